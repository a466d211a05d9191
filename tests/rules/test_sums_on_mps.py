"""Sums on the device: double precision, except in programs that may run where there are no doubles."""

from __future__ import annotations

import pytest

from perflint.findings import WRITABLE, Finding
from perflint.fixes.apply import apply_fixes
from perflint.rules.sync.scalar_read_in_loop import ScalarReadInLoop
from tests.rules.harness import lint

PROGRAM = """
import torch
from torch import nn

class AverageMeter:
    def __init__(self):
        self.sum = 0.0
        self.count = 0
        self.avg = 0.0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

        self.avg = self.sum / self.count

def train(model: nn.Module, loader, optimizer):
    device = {device}
    model.to(device)
    meter = AverageMeter()
    total = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        total += loss.item()
        meter.update(loss.item(), len(x))
    return total, meter.avg
"""


def fixed(text: str) -> str:
    def relint(now: str) -> list[Finding]:
        return lint(now, [ScalarReadInLoop], "audit")

    return apply_fixes(text, relint(text), relint, WRITABLE).text


@pytest.mark.parametrize(
    ("device", "wide"),
    [
        ('"cuda" if torch.cuda.is_available() else "cpu"', "double"),
        ('"cuda" if torch.cuda.is_available() else "mps"', "float"),
        ('torch.device("mps:0") if torch.backends.mps.is_available() else torch.device("cuda")', "float"),
    ],
)
def test_sums_have_a_dtype_that_the_device_has(device: str, wide: str) -> None:
    text = fixed(PROGRAM.format(device=device))
    assert f"total += loss.detach().{wide}()" in text
    assert f"meter.update(loss.detach().{wide}(), len(x))" in text


def test_a_number_that_is_wide_already_stays_so() -> None:
    program = PROGRAM.format(device='"mps"').replace("total += loss.item()", "total += loss.float().item()")
    assert "total += loss.float().detach()\n" in fixed(program)

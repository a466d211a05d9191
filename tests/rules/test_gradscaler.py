"""What is said of a gradient scaler beside bfloat16."""

from __future__ import annotations

import pytest

from perflint.rules.sync.gradscaler_host_reads import GradscalerHostReads
from tests.rules.harness import lint

TRAINING = """\
import torch

def train(model, loader, half):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler()
    for batch in loader:
        with torch.autocast("cuda"{dtype}):
            loss = model(batch).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""


@pytest.mark.parametrize(
    ("dtype", "says", "fixes"),
    [
        (", dtype=torch.bfloat16", "remove the scaler", False),
        (", dtype=torch.float16", "fused=True", True),
        (", dtype=half", "fused=True", True),
        ("", "fused=True", True),
    ],
)
def test_no_scaler_is_needed_beside_bfloat16(dtype: str, says: str, fixes: bool) -> None:
    (finding,) = lint(TRAINING.format(dtype=dtype), [GradscalerHostReads], "default")
    assert says in (finding.help or "")
    assert (finding.fix is not None) is fixes

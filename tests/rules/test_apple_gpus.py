"""Fixes in programs that may run on GPUs of Apple.

These have no doubles, and a copy to them that does not block may read memory that is free already.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import WRITABLE, Finding, Safety
from perflint.fixes.apply import apply_fixes
from perflint.rules.base import Rule
from perflint.rules.registry import RuleSet
from perflint.rules.sync.list_to_cuda import ListToCuda
from perflint.rules.sync.scalar_read_in_loop import ScalarReadInLoop
from perflint.rules.transfer.blocking_h2d import BlockingH2d
from perflint.semantics.project import Project
from perflint.source.text import Source
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


def fixed(text: str, rule: type[Rule] = ScalarReadInLoop) -> str:
    def relint(now: str) -> list[Finding]:
        return lint(now, [rule], "audit")

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


BATCHES = """
import torch
from torch.utils.data import DataLoader, TensorDataset

{device}

def train(model: torch.nn.Module{parameter}):
    for (x,) in DataLoader(TensorDataset(torch.randn(8, 3)), batch_size=4, pin_memory=True):
        model(x{move}).sum().backward()
"""
CHOSEN = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'


def of_batch(tmp_path: Path, text: str, **others: str) -> Safety | None:
    """The degree of the fix for the copy of a batch; None without a fix."""
    files = {"train.py": text, **{f"{name}.py": other for name, other in others.items()}}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    project = Project([tmp_path / name for name in files])
    rules = RuleSet([BlockingH2d()])
    report = check_source(Source(str(tmp_path / "train.py"), text), project, rules, Settings(profile=Profile.AUDIT))
    (finding,) = report.findings
    return None if finding.fix is None else finding.fix.safety


@pytest.mark.parametrize(
    ("device", "parameter", "move", "safety"),
    [
        (CHOSEN, "", ".to(device)", Safety.SAFE),
        ("", "", '.to("cuda")', Safety.SAFE),
        ("", "", ".cuda()", Safety.SAFE),
        ("", ", device", ".to(device)", Safety.UNSAFE),
        ("", ", device: torch.device", ".to(device)", Safety.UNSAFE),
        ("import sys\ndevice = torch.device(sys.argv[1])", "", ".to(device)", Safety.UNSAFE),
        ('device = "cuda" if torch.cuda.is_available() else "mps"', "", ".to(device)", None),
        ('device = "cuda" if torch.cuda.is_available() else "mps"', "", ".cuda()", Safety.SAFE),
        ('device = "cuda" if torch.cuda.is_available() else "mps"', "", '.to("cuda:0")', Safety.SAFE),
    ],
)
def test_a_batch_is_copied_without_blocking_to_gpus_of_cuda(
    tmp_path: Path, device: str, parameter: str, move: str, safety: Safety | None
) -> None:
    assert of_batch(tmp_path, BATCHES.format(device=device, parameter=parameter, move=move)) is safety


@pytest.mark.parametrize(
    ("other", "safety"),
    [
        ("import torch\nDEVICE = 'mps' if torch.backends.mps.is_available() else 'cpu'", None),
        ("import torch\nIS_APPLE = torch.mps.is_available()", None),
        ('NAMES = ["mpsolve", "jumps"]', Safety.UNSAFE),
    ],
)
def test_a_device_may_be_named_in_a_file_that_is_not_imported(
    tmp_path: Path, other: str, safety: Safety | None
) -> None:
    text = BATCHES.format(device="", parameter=", device", move=".to(device)")
    assert of_batch(tmp_path, text, devices=other) is safety


@pytest.mark.parametrize(
    ("made", "copied"),
    [
        ("torch.tensor([0.5, 0.4], device=x.device)", "non_blocking=x.is_cuda"),
        ("torch.tensor([0.5, 0.4]).to(x.device)", "non_blocking=x.is_cuda"),
        ("torch.tensor([0.5, 0.4]).to(x)", "non_blocking=x.is_cuda"),
        ("x.new_tensor([0.5, 0.4])", "non_blocking=x.is_cuda"),
        ('torch.tensor([0.5, 0.4], device="cuda")', "non_blocking=True"),
        ("torch.tensor([0.5, 0.4]).cuda()", "non_blocking=True"),
        ("torch.tensor([0.5, 0.4], device=DEVICE)", 'non_blocking=DEVICE.type == "cuda"'),
    ],
)
def test_a_list_blocks_on_the_way_to_other_devices(made: str, copied: str) -> None:
    text = f"""
import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")

class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        y = {made}
        return x.cuda() * y
"""
    assert f"{copied}\n" in fixed(text, ListToCuda).replace(")\n", "\n")


def test_a_program_has_the_devices_of_the_files_that_run_with_it(tmp_path: Path) -> None:
    text = BATCHES.format(device=CHOSEN, parameter="", move=".to(device)")
    program = f"{text}\nif __name__ == '__main__':\n    train(torch.nn.Linear(3, 3))\n"
    apple = "import torch\nDEVICE = torch.device('mps')\n"
    assert of_batch(tmp_path, program, other=apple) is Safety.SAFE
    assert of_batch(tmp_path, text, other=apple) is None
    assert of_batch(tmp_path, f"import other\n{program}", other=apple) is None

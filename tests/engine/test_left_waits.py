"""Waits that are information: in code that no training runs, for other code, for a test, for a missing argument."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Finding, Need
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.engine.test_judgement import expected, marked

COLLECTS = """
import torch
from torch import nn
from torch.utils.data import DataLoader


@torch.no_grad()
def collect(model: nn.Module, loader: DataLoader):
    found = []
    for x, _ in loader:
        found.append(model(x.cuda()).cpu())
    return torch.cat(found)
"""
OPTIMIZER = "optimizer = torch.optim.SGD(model.parameters())\n"
TRAINS = "        for x, _ in loader:\n            model(x.cuda()).sum().backward()\n            optimizer.step()\n"
USES = "import torch\nfrom helper import collect\n\n\n"


def purposes(folder: Path, files: dict[str, str], path: str = "helper.py") -> set[str]:
    """The purposes of the code around the copies to the CPU in one of some files."""
    found = [each.judgement for each in audited(folder, files, path) if each.code == "TPF109"]
    return {each.purpose.value for each in found if each is not None}


def audited(folder: Path, files: dict[str, str], path: str = "helper.py") -> list[Finding]:
    """The findings of the audit profile in one of some files."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    project = Project(sorted(folder.rglob("*.py")))
    source = Source(str(folder / path), files[path])
    report = check_source(source, project, RuleSet(all_rules()), Settings(profile=Profile.AUDIT))
    assert not report.problems
    return report.findings


@pytest.mark.parametrize(
    ("use", "purpose"),
    [
        ("def main(model, loader):\n    return collect(model, loader)\n", "analysis"),
        ("def main(models, loader):\n    return [collect(model, loader) for model in models]\n", "analysis"),
        ("def main(models, loader):\n    for model in models:\n        print(collect(model, loader))\n", "analysis"),
        # Unknown callers.
        ("def main(runner):\n    runner.use(collect)\n", "inference"),
        ("def main(model, loader):\n    return model\n", "inference"),
        # Each epoch of a training.
        ("def main(model, loader):\n    for epoch in range(9):\n        collect(model, loader)\n", "inference"),
        (
            "def main(model, trainer, loader):\n    while trainer.goes_on:\n        trainer.train(model)\n"
            "        collect(model, loader)\n",
            "inference",
        ),
        (
            "def main(model, loader, optimizer):\n    while True:\n" + TRAINS + "        collect(model, loader)\n",
            "inference",
        ),
        # A loop of a function that trains may run for each training; the place behind it runs once.
        (
            "def main(model, loader, optimizer, parts):\n    if parts:\n"
            + TRAINS
            + "    for part in parts:\n        collect(model, part)\n",
            "inference",
        ),
        (
            "def main(model, loader, optimizer):\n    if loader:\n" + TRAINS + "    collect(model, loader)\n",
            "analysis",
        ),
        # Parts of a step, which other code calls.
        ("def training_step(model, loader):\n    return collect(model, loader)\n", "inference"),
        (
            "class Net(torch.nn.Module):\n    def summary(self, loader):\n        return collect(self, loader)\n",
            "inference",
        ),
    ],
)
def test_calls_of_a_function_that_copies_results(tmp_path: Path, use: str, purpose: str) -> None:
    assert purposes(tmp_path, {"helper.py": COLLECTS + OPTIMIZER_USE, "run.py": USES + use}) == {purpose}


OPTIMIZER_USE = """

def fit(model: nn.Module, loader: DataLoader):
    optimizer = torch.optim.SGD(model.parameters())
    for x, _ in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()
"""
"""Without it, the file would only evaluate."""


@pytest.mark.parametrize(
    ("between", "purpose"),
    [
        ("def results(model, loader):\n    return collect(model, loader)\n", "analysis"),
        ("def train_results(model, loader):\n    return collect(model, loader)\n", "analysis"),
        (
            "def results(model, loader, optimizer):\n    for epoch in range(2):\n        collect(model, loader)\n",
            "inference",
        ),
    ],
)
def test_calls_over_several_files(tmp_path: Path, between: str, purpose: str) -> None:
    name = between.partition("def ")[2].partition("(")[0]
    use = f"from between import {name}\n\n\ndef main(model, loader):\n    {name}(model, loader)\n"
    files = {"helper.py": COLLECTS + OPTIMIZER_USE, "between.py": USES + between, "run.py": use}
    assert purposes(tmp_path, files) == {purpose}


def test_calls_over_a_training_in_another_file(tmp_path: Path) -> None:
    between = "def results(model, loader):\n    return collect(model, loader)\n"
    loop = "    for epoch in range(9):\n        results(model, loader)\n"
    use = "from between import results\n\n\ndef main(model, loader):\n" + loop
    files = {"helper.py": COLLECTS + OPTIMIZER_USE, "between.py": USES + between, "run.py": use}
    assert purposes(tmp_path, files) == {"inference"}


def test_code_that_a_package_offers(tmp_path: Path) -> None:
    use = "from app.helper import collect\n\n\ndef main(model, loader):\n    return collect(model, loader)\n"
    files = {"app/helper.py": COLLECTS + OPTIMIZER_USE, "run.py": use, "app/__init__.py": ""}
    assert purposes(tmp_path, files, "app/helper.py") == {"analysis"}
    offering = files | {"app/__init__.py": "from .helper import collect\n"}
    assert purposes(tmp_path, offering, "app/helper.py") == {"inference"}


def test_parts_of_one_tensor_are_copied_at_once(tmp_path: Path) -> None:
    text = COLLECTS.replace("found.append(model(x.cuda()).cpu())", "found += [row.cpu() for row in model(x.cuda())]")
    use = USES + "def main(model, loader):\n    return collect(model, loader)\n"
    found = audited(tmp_path, {"helper.py": text + OPTIMIZER_USE, "run.py": use})
    copies = [each for each in found if each.code == "TPF109"]
    assert [each.severity.value for each in copies] == ["warning"]
    assert copies[0].judgement is not None and copies[0].judgement.need is Need.ONCE


SCORES = """
import torch
from torch import nn
from torch.utils.data import DataLoader


@torch.no_grad()
def score(model: nn.Module, loader: DataLoader, device: torch.device):
    kept = []
    for x, _ in loader:
        out = model(x.to(device))
        kept.append(out[out > 0])               # once TPF110
    return kept, decode(model, out, len(kept))


def decode(model: nn.Module, out: torch.Tensor, steps: int):
    kept = []
    for _ in range(steps):
        # An iteration goes on with the results of the last.
        out = model(out)
        kept.append(out[out > 0])               # always TPF110
    return kept
"""


@pytest.mark.parametrize(
    ("use", "severity"),
    [
        ("def main(model, loader):\n    return score(model, loader, 'cuda')\n", "info"),
        # Unknown callers, each epoch of a training, a part of a step.
        ("def main(runner):\n    runner.use(score)\n", "warning"),
        ("def main(model, loader):\n    for epoch in range(9):\n        score(model, loader, 'cuda')\n", "warning"),
        ("def training_step(model, loader):\n    return score(model, loader, 'cuda')\n", "warning"),
    ],
)
def test_calls_of_a_function_that_selects(tmp_path: Path, use: str, severity: str) -> None:
    files = {"helper.py": SCORES + OPTIMIZER_USE, "run.py": "from helper import score\n\n\n" + use}
    found = {(each.span.line, each.code): each.severity.value for each in audited(tmp_path, files)}
    lines = [(n, line.partition("# ")[2].split()) for n, line in enumerate(SCORES.splitlines(), 1)]
    marked = {(n, marks[1]): marks[0] for n, marks in lines if marks and marks[0] in ("once", "always")}
    assert {place: found.get(place) for place in marked} == {
        place: severity if often == "once" else "warning" for place, often in marked.items()
    }


TAKEN = """
import numpy as np
import torch
from scipy.ndimage import label
from torch import nn
from torch.utils.data import DataLoader


def overlap(boxes: np.ndarray) -> float:
    return float(boxes.sum())


class Boxes:
    def __init__(self, boxes: np.ndarray) -> None:
        self.boxes = boxes


def evaluate(model: nn.Module, loader: DataLoader, index, losses):
    found = []
    for epoch in range(9):
        for x, _ in loader:
            out = model(x.cuda())
            small, _ = label(out.detach().cpu().numpy())  # info
            total = overlap(boxes=out.cpu())  # info
            array = out.cpu().numpy()  # info
            total += overlap(array) + overlap(array)
            both = out.cpu().numpy()  # warning
            total += overlap(both)
            found.append(both)
            kept = Boxes(out.cpu().numpy())  # warning
            found.append(overlap(out.cpu().numpy()))  # info
            norm = torch.linalg.norm(out.cpu())  # warning
            most = np.argmax(out.cpu().numpy())  # warning
            index.search(out.cpu().numpy())  # warning
            total += overlap(out.tolist())  # warning
            losses.update(out.cpu())  # warning
            total += overlap(out.mean().cpu())  # warning
    return found, small, total, kept, norm, most


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer):
    for x, _ in loader:
        out = model(x.cuda())
        out.sum().backward()
        optimizer.step()
        print(overlap(out.detach().cpu().numpy()))  # warning
"""


def test_copies_that_other_code_takes() -> None:
    assert marked(TAKEN, "TPF109") == expected(TAKEN)


COUNTED = """
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        x, mask = x.cuda(), mask.cuda()
        first = mask.nonzero()  # info
        if len(first) == 0:
            return x
        second = torch.where(mask)[0]  # info
        if x.ndim == 2 and second.numel() > 1:
            x = x + 1
        third = mask.nonzero()  # info
        if third.shape[0] > 2:
            x = x + 1
        fourth = mask.nonzero()  # warning
        if fourth.ndim == 2:
            x = x + len(fourth)
        fifth = mask.nonzero()  # warning
        x = x[: min(len(fifth), 8)]
        if len(mask.nonzero()) > 0:  # warning
            x = x + 1
        if x.ndim == 2:
            sixth = mask.nonzero()  # warning
            x = x[sixth]
        return x
"""


def test_positions_whose_number_is_tested() -> None:
    assert marked(COUNTED, "TPF110") == expected(COUNTED)


OPTIONAL = """
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor, lengths=None, steps: int = 3, mask: torch.Tensor | None = None, *, scale=None):
        if lengths is None:
            lengths = torch.tensor([x.shape[-1]], device=x.device)  # info
        if scale is None and steps > 2:
            scale = torch.tensor([1.0, 2.0], device=x.device)  # warning
        if scale is not None:
            lengths = lengths * torch.tensor([1, 2], device=x.device)  # warning
        else:
            lengths = lengths * torch.tensor([1, 2], device=x.device)  # warning
        if mask is None:
            x = x[:, [1, 2]] + torch.tensor([3, 4], device=x.device)  # warning
        if mask is None:
            mask = torch.as_tensor([True, False], device=x.device)[None]  # info
        if steps is None:
            steps = torch.tensor([3, 4], device=x.device)  # warning
        table = self.table
        if table is None:
            table = torch.tensor([3, 4], device=x.device)  # warning
        return x, lengths, mask, scale, table
"""


def test_numbers_for_arguments_that_are_missing() -> None:
    assert marked(OPTIONAL, "TPF117") == expected(OPTIONAL)

"""No rule fails at methods that are called by another name: `move = x.to; move(device)`, `getattr(x, "cuda")()`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.rules.harness import NEWEST, lint

torch = pytest.importorskip("torch")

PROGRAM = """\
import torch
from torch import nn
model = nn.Linear(2, 2).cuda()
optimizer = torch.optim.Adam(model.parameters())
host, x = torch.ones(4, 4), torch.ones(4, 4).cuda()
mask = x > 3

def train(loader):
    for data in loader:
        optimizer.zero_grad()
        model(data.cuda()).sum().backward()
        optimizer.step()
"""
ARGUMENTS = ("", "1", '"cpu"', '"cuda"', "mask", "0, 1", "dim=0", "mask, 1.0")
OBJECTS = {
    "x": torch.Tensor,
    "host": torch.Tensor,
    "model": torch.nn.Module,
    "optimizer": torch.optim.Optimizer,
}


def calls(name: str, kind: type, every: int) -> Iterator[str]:
    """Calls of every few public methods of a class by other names."""
    for method in [each for each in dir(kind) if not each.startswith("_")][::every]:
        yield f"bound = {name}.{method}"
        for arguments in ARGUMENTS:
            yield f"kept = bound({arguments})"
            yield f'print(getattr({name}, "{method}")({arguments}))'


@pytest.mark.parametrize(
    ("name", "every"),
    [
        *(("x", 4), ("model", 1), ("optimizer", 1)),
        *(pytest.param(name, 1, marks=pytest.mark.slow) for name in ("x", "host")),
    ],
)
def test_all_methods(name: str, every: int) -> None:
    text = PROGRAM + "".join(f"        {line}\n" for line in calls(name, OBJECTS[name], every))
    source = Source("example.py", text)
    settings = Settings(profile=Profile.AUDIT, torch_version=NEWEST)
    report = check_source(source, Project([]), RuleSet(list(all_rules())), settings)
    assert not report.problems


@pytest.mark.parametrize("made", ['getattr(torch.ones(4), "cuda")()', "moved()"])
def test_a_read_of_a_moved_tensor(made: str) -> None:
    """Its reason names the method, whatever its name in the source is."""
    lines = ["moved = torch.ones(4).cuda", f"x = {made}", "print(x.sum().item())"]
    text = "import torch\nfor i in range(9):\n" + "".join(f"    {line}\n" for line in lines)
    (rule,) = (type(each) for each in all_rules() if each.code == "TPF101")
    assert [finding.span.line for finding in lint(text, [rule], "audit")] == [5]

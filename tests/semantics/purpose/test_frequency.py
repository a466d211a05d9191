"""The unit that a line runs for, and the purpose of its code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from perflint.findings import Frequency
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.purpose.frequency import frequency
from perflint.semantics.purpose.purpose import purpose
from perflint.source.text import Source

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        here(1)                                 # run setup

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            here(x)                             # layer training
        here(x)                                 # step training
        return x


def train_epoch(net: Net, loader: DataLoader, optimizer: torch.optim.Optimizer, log):
    here(loader)                                # epoch library
    for step, x in enumerate(loader):
        for part in x.split(4):
            loss = net(part).sum()
            loss.backward()
            here(loss)                          # microbatch training
        optimizer.step()
        for name in ("a", "b"):
            here(name)                          # item training
        for i in range(len(x)):
            here(len(x[i]))                     # item training
        here(loss)                              # step training
        if step % 1000 == 0:
            here(loss)                          # interval library
        logged(loss)


def logged(loss):
    here(loss)                                  # step training


def test(net: Net, loader: DataLoader):
    right = 0
    for x in loader:
        right += net(x).sum()
        here(right)                             # batch inference
    here(right)                                 # epoch library


def generate(net: Net, ids):
    for _ in range(100):
        logits = net(ids)
        ids = logits[:, -1].argmax(-1)
        here(ids)                               # token decoding
    return ids


def segment(net: Net, paths):
    for path in paths:
        found = net(torch.load(path).cuda())
        here(found)                             # file inference


def sizes(rows):
    for row in rows:
        here(row)                               # iteration library


def size(row):
    here(row)                                   # unknown library
"""


def found(folder: Path, text: str) -> dict[int, tuple[str, str]]:
    """The frequency and the purpose of each call of `here` in a program, by line."""
    path = folder / "program.py"
    path.write_text(text)
    model = Model(Source(str(path), text), Project([path]))
    calls = [each for each in model.nodes(ast.Call) if isinstance(each.func, ast.Name) and each.func.id == "here"]
    answers = {each.lineno: (frequency(model, each).value, purpose(model, each)[0].value) for each in calls}
    model.close()
    return answers


def marked(text: str) -> dict[int, tuple[str, ...]]:
    lines = enumerate(text.splitlines(), 1)
    return {n: tuple(line.partition("#")[2].split()) for n, line in lines if "here(" in line}


def test_units(tmp_path: Path) -> None:
    assert found(tmp_path, PROGRAM) == marked(PROGRAM)


CALLED = """
import torch
from torch import nn


def read(x):
    here(x)


def run(net: nn.Module, loader, optimizer):
    for x in loader:
        loss = net(x).sum()
        {call}
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("call", "unit"),
    [
        ("read(loss)", Frequency.STEP),
        ("[read(each) for each in loss]", Frequency.STEP),
        ("for each in (1, 2):\n            read(each)", Frequency.ITEM),
    ],
)
def test_the_unit_of_a_function_is_that_of_its_most_frequent_call(tmp_path: Path, call: str, unit: Frequency) -> None:
    assert [each for each, _ in found(tmp_path, CALLED.format(call=call)).values()] == [unit.value]


def test_a_training_that_a_number_ends_is_no_training(tmp_path: Path) -> None:
    text = CALLED.format(call="if step >= 5:\n            break\n        here(loss)")
    text = text.replace("for x in loader:", "for step, x in enumerate(loader):")
    assert {unit for unit, _ in found(tmp_path, text).values()} == {"run", "unknown"}


VALIDATES = """
import torch
from torch import nn


def target_validation(net: nn.Module, loader, target: torch.Tensor):
    {first}
    here(target)
    {last}
"""


@pytest.mark.parametrize(
    ("first", "last", "job"),
    [
        ("pass", "if target.max() > 1:\n        raise ValueError(target)", "library"),
        ("pass", "for _ in (0, 1):\n        if target.max() > 1:\n            raise ValueError(target)", "library"),
        ("if len(loader) == 0:\n        raise ValueError(loader)", "print(target)", "evaluation"),
        ("pass", "if target.max() > 1:\n        raise ValueError(target)\n    return target.max()", "evaluation"),
        ("for x in loader:\n        net(x)", "if target.max() > 1:\n        raise ValueError(target)", "evaluation"),
    ],
)
def test_a_validation_that_only_raises_checks_its_arguments(tmp_path: Path, first: str, last: str, job: str) -> None:
    assert [each for _, each in found(tmp_path, VALIDATES.format(first=first, last=last)).values()] == [job]

"""Expressions that code proves to be numbers, lists or devices, and those that only an annotation says to be."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from perflint.rules._proven import is_device, is_list, is_number
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source

PROGRAM = """
import math
import random
import time
import torch
import numpy as np

EPS = 1e-8
SIZES = [1, 2]
UNSET = None

class Base:
    start = 0
    limit: int = 3

    def __init__(self, scale: float, values: list[float], device=None):
        self.count = 0
        self.total = 0.0
        self.scale = scale
        self.values = values
        self.kept = [1.0]
        self.names: list[str] = []
        self.device = device
        self.place = torch.device("cuda")
        self._stored = 1

    @property
    def stored(self):
        return self._stored

    @stored.setter
    def stored(self, value):
        self._stored = value

    def reset(self, other):
        self.count += 1
        self.total = self.total + len(self.kept)

    def step(self, x: torch.Tensor, eps: float, items: list[int], place: torch.device, *rest, n=1, many=(1, 2)):
        number = 3
        number += 1
        doubled = number * 2
        grown = []
        grown.append(x)
        mixed = 1
        if x.ndim:
            mixed = eps
        rows, columns = x.shape[-2:]
        first, *others = x.shape
        total = 0
        for i, row in enumerate(x):
            total = total + i
        flag = x.device
        chosen = place if place is not None else x.device
        with open("f") as handle:
            pass
{before}
        return {given}
"""


def proof(decide: Callable[[Model, ast.expr], bool], given: str, before: str = "") -> bool:
    text = PROGRAM.replace("{given}", given).replace("{before}", before)
    model = Model(Source("program.py", text), Project())
    found = model.nodes(ast.Return)[-1].value
    assert found is not None
    return decide(model, found)


NUMBERS = [
    *(
        "1",
        "-1.5",
        "True",
        "not x",
        "x is None",
        "1 in x",
        "EPS",
        "number",
        "doubled",
        "rows",
        "columns",
        "first",
    ),
    *(
        "total",
        "i",
        "float(eps)",
        "int(eps) + 1",
        "len(items)",
        "x.item()",
        "x.size(0)",
        "x.shape[0]",
        "x.ndim",
        "x.numel()",
    ),
    *(
        "x.size()[1]",
        "x.dim()",
        "math.pi",
        "np.inf",
        "float('nan')",
        "math.sqrt(eps)",
        "time.time()",
        "random.random()",
    ),
    *(
        "torch.finfo(x.dtype).eps",
        "torch.iinfo(x.dtype).max",
        "max(len(items), 1)",
        "round(number / 3, 2)",
        "number > 2",
    ),
    *(
        "1 if eps else 2",
        "(m := 3)",
        "self.count",
        "self.total",
        "self.start",
    ),
    *("torch.cuda.device_count()", "number if eps else i", "abs(-number)", "2 ** number"),
]
UNPROVEN = [
    *(
        "eps",
        "n",
        "mixed",
        "eps * 2",
        "-eps",
        "max(eps, 1)",
        "eps > 1",
        "self.scale",
        "self.limit",
        "self.stored",
    ),
    *("items[0]", "x", "x.sum()", "x.shape", "others", "row", "rest", "UNSET", "self.kept[0]", "1 if x.ndim else eps"),
    *(
        "unknown",
        "unknown.value",
        "round(eps)",
        "sum(items)",
        "math.floor(eps)",
        "'a'",
        "np.float32(1)",
        "np.mean(items)",
    ),
    *("handle", "abs(x)", "x.shape[0] * eps", "self.values[0]", "[1]", "other.count"),
]


@pytest.mark.parametrize("given", NUMBERS)
def test_numbers(given: str) -> None:
    assert proof(is_number, given)


@pytest.mark.parametrize("given", UNPROVEN)
def test_expressions_that_may_be_something_else(given: str) -> None:
    assert not proof(is_number, given)


@pytest.mark.parametrize(
    ("before", "given", "is_proven"),
    [
        ("        if isinstance(eps, float):\n            return eps", "None", True),
        ("        if isinstance(eps, (int, float)) and x.ndim:\n            return eps + 1", "None", True),
        ("        if not isinstance(eps, float):\n            return eps", "None", False),
        ("        if isinstance(eps, float) or x.ndim:\n            return eps", "None", False),
        ("        if isinstance(eps, (int, torch.Tensor)):\n            return eps", "None", False),
        ("        if isinstance(n, int):\n            return eps", "None", False),
        ("        if isinstance(eps, int):\n            eps = self.scale\n            return eps", "None", False),
        ("        if isinstance(eps, int):\n            pass\n        else:\n            return eps", "None", False),
        ("        if not isinstance(eps, torch.Tensor):\n            return eps", "None", False),
    ],
)
def test_numbers_that_are_tested(before: str, given: str, is_proven: bool) -> None:
    text = PROGRAM.replace("{given}", given).replace("{before}", before)
    model = Model(Source("program.py", text), Project())
    inner = next(node.value for node in model.nodes(ast.Return) if "eps" in ast.dump(node))
    assert inner is not None and is_number(model, inner) is is_proven


LISTS = [
    "[1, n]",
    "(1, 2)",
    "[k for k in items]",
    "list(items)",
    "SIZES",
    "grown",
    "x.shape",
    "x.shape[1:]",
    "x.size()",
]
LISTS += ["x.tolist()", "[0] * n", "[1] + list(items)", "rest", "self.kept", "self.names", "range(3)", "grown[1:]"]


@pytest.mark.parametrize("given", LISTS)
def test_lists(given: str) -> None:
    assert proof(is_list, given)


@pytest.mark.parametrize(
    "given",
    ["items", "many", "self.values", "items + [1]", "items[1:]", "x", "x[1:]", "unknown", "np.ones(3)", "number"],
)
def test_expressions_that_may_be_no_list(given: str) -> None:
    assert not proof(is_list, given)


@pytest.mark.parametrize(
    "given", ["x.device", "'cuda'", "0", "torch.device('cuda')", "flag", "f'cuda:{n}'", "self.place"]
)
def test_devices(given: str) -> None:
    assert proof(is_device, given)


@pytest.mark.parametrize("given", ["None", "place", "self.device", "unknown.device", "chosen", "unknown", "UNSET"])
def test_expressions_that_may_be_no_device(given: str) -> None:
    assert not proof(is_device, given)


ATTRIBUTE = """
class Counter({base}):
    def __init__(self):
        {begin}

    def step(self):
        self.count += 1
        return self.count
"""


@pytest.mark.parametrize(
    ("begin", "is_proven"),
    [
        ("self.count = 0", True),
        ("self.count: int = 0", True),
        ("self.count = None", False),
        ("pass", False),
        ("self.register_buffer('count', torch.zeros(()))", False),
        ("self.count = 0; self.register_buffer('count', torch.zeros(()))", False),
        ("self.count = 0; setattr(self, name, torch.zeros(()))", False),
        ("self.count = 0; self.__dict__.update(state)", False),
        ("self.count, self.other = 0, torch.zeros(())", False),
    ],
)
def test_attributes_that_a_class_sets(begin: str, is_proven: bool) -> None:
    model = Model(Source("program.py", ATTRIBUTE.format(base="Base", begin=begin)), Project())
    found = model.nodes(ast.Return)[-1].value
    assert found is not None and is_number(model, found) is is_proven


@pytest.mark.parametrize(
    ("other", "is_proven"),
    [
        ("base.count == 3", True),
        ("base.counted = 3", True),
        ("base.count = tensor", False),
        ("base.count += tensor", False),
        ("base.count, rest = pair", False),
        ("base.count: float = tensor", False),
        ("setattr(base, 'count', tensor)", False),
    ],
)
def test_an_attribute_that_other_files_may_set(tmp_path: Path, other: str, is_proven: bool) -> None:
    text = PROGRAM.replace("{given}", "self.count").replace("{before}", "")
    (tmp_path / "program.py").write_text(text)
    (tmp_path / "other.py").write_text(f"from program import base\n{other}\n")
    model = Model(Source(str(tmp_path / "program.py"), text), Project([tmp_path / "program.py", tmp_path / "other.py"]))
    found = model.nodes(ast.Return)[-1].value
    assert found is not None and is_number(model, found) is is_proven

"""Each form keeps the meaning of a program, and the marks of its expressions."""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import types
from collections.abc import Iterator
from copy import deepcopy

import pytest

from tests.forms.catalogue import FORMS
from tests.forms.program import MAIN, Form, Program, marks, places
from tests.forms.table import title

PROGRAM = '''
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(in_features=width, out_features=2))

    def forward(self, x: torch.Tensor):
        hidden = self.layers(x)
        return self.scaled(hidden)

    def scaled(self, x):
        return x * 2


@torch.no_grad()
def total(net, batches):
    """The sum of all outputs."""
    sums = torch.zeros(1)
    for x in batches:
        out = net(x.to("cpu"))
        if (out > 0).any().item():
            sums = sums + out.sum()
        print("seen", round(out.float().mean().item(), 4))
    return sums


def powers(count: int):
    found = []
    for i in range(count):
        y = torch.full((2,), float(i)).double()
        found.append(torch.stack([y, y + 1]).sum().item())
        print(f"power {found[-1]} of {len(found)}")
    return found


def twice(f):
    def inner(*args):
        return f(*args), f(*args)
    return inner


def one():
    return 1


one = twice(one)
torch.manual_seed(0)
net = Net(3)
net.eval()
other = nn.Linear(4, 2).eval()
data = [torch.randn(2, 4) for _ in range(3)]
print(total(net, data), total(other, batches=data), powers(3), one())
assert total(net, data).shape == (1,)
'''
GPU = """
import torch

def copies(xs):
    for x in xs:
        print(x.cuda(), x.to("cuda"))
"""
SCRIPT = """
import torch

def half(x):
    return x / 2

total = torch.zeros(())
for x in torch.arange(3):
    total += half(x)
print(total)
"""
NOT_RUN = {"moves by to", "moves by cuda"}
"""Forms of code that needs a GPU."""


@contextlib.contextmanager
def modules(texts: dict[str, str]) -> Iterator[None]:
    """Imports of the other modules of a program find these, and tqdm is silent."""
    tqdm = types.ModuleType("tqdm")
    tqdm.tqdm = iter  # type: ignore[attr-defined]
    added = {"tqdm": tqdm} | {name: types.ModuleType(name) for name in texts if name != MAIN}
    before = {name: sys.modules.get(name) for name in added}
    sys.modules.update(added)
    try:
        for name in added.keys() & texts.keys():
            exec(compile(texts[name], name, "exec"), vars(added[name]))
        yield
    finally:
        for name, old in before.items():
            sys.modules.pop(name)
            if old is not None:
                sys.modules[name] = old


def printed(texts: dict[str, str]) -> str:
    """The output of a program."""
    out, module = io.StringIO(), types.ModuleType("__main__")
    with modules(texts), contextlib.redirect_stdout(out):
        exec(compile(texts[MAIN], MAIN, "exec"), vars(module))
    return out.getvalue()


def marked(text: str) -> Program:
    """A program whose expressions all have marks of their own."""
    program = Program({MAIN: ast.parse(text)})
    for number, node in enumerate(ast.walk(program.main)):
        if isinstance(node, ast.Call):
            marks(node).add(number)
    return program


@pytest.mark.parametrize("form", FORMS, ids=title)
def test_form_keeps_the_meaning(form: Form) -> None:
    program = marked(GPU if title(form) in NOT_RUN else SCRIPT if title(form) == "script in main" else PROGRAM)
    before, kept = program.texts(), set(places(program))
    form(program)
    after = program.texts()
    assert after != before
    assert set(places(program)) == kept, "an expression is lost"
    if title(form) not in NOT_RUN:
        assert printed(after) == printed(before)


FORM = {form.__name__: form for form in FORMS}  # type: ignore[attr-defined]


def written(name: str, text: str) -> str:
    """The main module of a program in a form."""
    program = Program({MAIN: ast.parse(text)})
    FORM[name](program)
    return program.texts()[MAIN]


def test_code_that_cannot_be_written_so_stays() -> None:
    for name, text in (
        ("loops_in_functions", "for x in xs:\n    if x:\n        break\n"),
        ("loops_in_functions", "def f(xs):\n    for x in xs:\n        if x:\n            y = 1\n    return y\n"),
        ("names_inlined", "y = f()\nprint(g(), y)\n"),
        ("names_inlined", "y = f()\nprint(y, y)\n"),
        ("ranges_with_while", "for i in range(n):\n    if i:\n        continue\n    f(i)\n"),
        ("bodies_in_functions", "def f(x):\n    yield x\n"),
        ("imports_by_other_names", "import torch\ntorch = 1\n"),
        ("moves_as_statements", "y = x.float().to(d)\n"),
    ):
        assert written(name, text) == text


def test_marks_move_along() -> None:
    program = marked("def f(x):\n    print(g(x).item())\n")
    number = next(number for number, where in places(program).items() if where == {(MAIN, 2)})
    assert number
    before = deepcopy(program)
    FORM["operands_with_names"](program)
    assert {where for each in places(program).values() for where in each} == {(MAIN, 2), (MAIN, 3)}
    assert places(before).keys() == places(program).keys()

"""Tensors that certainly have dimensions: the proof against torch."""

from __future__ import annotations

import ast
import contextlib
import warnings
from pathlib import Path

import pytest

from perflint.rules.sync._dimensions import has_dimensions
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source

torch = pytest.importorskip("torch")

PROVEN = [
    "x.sum(1)",
    "x.any(dim=1)",
    "x.any(dim=(1, 2))",
    "x.sum(-3)",
    "x.sum(1, keepdim=True)",
    "x.cumsum(1)",
    "x.unsqueeze(0) > 0",
    "x[None] > 0",
    "x[:, 0] > 0",
    "x.flatten() > 0",
    "x[x > 0]",
    "x[x > 0, :]",
    "torch.isfinite(x[x > 0])",
    "x.reshape(2 * 2)",
    "x.reshape((2, 2))",
    "x.repeat(2, 1, 1)",
    "x.amax(dim=1)",
]
UNKNOWN = [
    "x",
    "x > 0",
    "x.sum()",
    "x.sum(0)",
    "x.sum(-1)",
    "x.sum(0, keepdim=True)",
    "x.sum(-1, keepdim=True)",
    "x.any(dim=(0, 1))",
    "x.any(dim=(-1, -2))",
    "x.cumsum(0)",
    "x.softmax(-1)",
    "x.flip(0)",
    "x.argsort(0)",
    "x.max(dim=0)[0]",
    "x.reshape(())",
    "x.reshape(shape)",
    "x[...]",
    "x[0]",
    "x[0, 0]",
]
BEFORE = {
    "b, n = x.shape": True,
    "x.shape[0]": True,
    "x.size(-1)": True,
    "len(x)": True,
    "x[:, 0]": True,
    "b, *rest = x.shape": False,
    "x.shape": False,
    "x[...]": False,
    "x[None]": False,
    "x = x.sum(); y = x": False,
    "if len(shape): len(x)": False,
    "y = len(shape) and len(x)": False,
}
SHAPES = [(), (1,), (4,), (2, 2), (2, 2, 1), (1, 2, 2, 1)]


def model_of(text: str) -> Model:
    """The model of a file."""
    source = Source("example.py", text)
    model = Model(source, Project([Path(source.path)]))
    model.infer()
    return model


def is_proven(code: str, before: str = "pass") -> bool:
    """True if the value of an expression has dimensions for certain."""
    model = model_of(f"import torch\n\ndef run(x: torch.Tensor, shape):\n    {before}\n    return ({code})\n")
    (returned,) = model.nodes(ast.Return)
    assert returned.value is not None
    return has_dimensions(model, returned.value)


def ranks(code: str, before: str = "pass") -> set[int]:
    """The numbers of dimensions that an expression has for tensors of different shapes, if it raises no error."""
    found = set()
    for shape in SHAPES:
        for sizes in ((), (4,)):
            names = {"torch": torch, "x": torch.arange(4.0)[: torch.Size(shape).numel()].reshape(shape), "shape": sizes}
            with contextlib.suppress(RuntimeError, IndexError, ValueError, TypeError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(before, names)
                found.add(eval(code, names).dim())
    return found


@pytest.mark.parametrize("code", PROVEN)
def test_what_is_proven_is_true(code: str) -> None:
    assert is_proven(code) and 0 not in ranks(code)


@pytest.mark.parametrize("code", UNKNOWN)
def test_what_may_be_a_number_is_not_proven(code: str) -> None:
    assert not is_proven(code)


@pytest.mark.parametrize(("before", "proven"), BEFORE.items())
def test_code_before_shows_dimensions(before: str, proven: bool) -> None:
    assert is_proven("x > 0", before) is proven
    if proven:
        assert 0 not in ranks("x > 0", before)


def test_code_behind_shows_nothing() -> None:
    model = model_of("import torch\n\ndef run(x: torch.Tensor):\n    m = x > 0\n    len(x)\n    return m\n")
    (returned,) = model.nodes(ast.Return)
    assert returned.value is not None and not has_dimensions(model, returned.value)

"""Lengths of dimensions that the call shows that makes a tensor."""

from __future__ import annotations

import ast
import re

from perflint.rules._memory.flows import bound
from perflint.semantics.facts import torch_api
from perflint.semantics.model import Model
from perflint.semantics.values import Const

_SIZED = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "rand", "randn"))
"""Factories whose arguments are the size."""
_RESHAPES = re.compile(r"\.(?:data\s*=|(?:resize|resize_as|set|squeeze|unsqueeze|t|transpose|swapaxes|swapdims)_\()")
"""Changes of the shape of a tensor in place."""


def has_element(model: Model, tensor: ast.expr, axis: int, place: int) -> bool:
    """True if the call that makes a tensor shows that a dimension has an element at a position."""
    made = bound(model, tensor) if isinstance(tensor, ast.Name) else tensor
    if not isinstance(made, ast.Call) or model.matches(_RESHAPES):
        return False
    sizes = _sizes(model, made)
    length = model.value(sizes[axis]) if axis < len(sizes) else None
    return isinstance(length, Const) and isinstance(length.value, int) and -length.value <= place < length.value


def _sizes(model: Model, made: ast.Call) -> list[ast.expr]:
    """The lengths of the dimensions of a new tensor; empty if the call does not list them."""
    target = torch_api.canonical(model.target(made))
    given = list(made.args)
    if target == "torch.eye":
        return [] if any(each.arg in ("n", "m") for each in made.keywords) else (given * 2)[:2]
    if target == "torch.arange" and len(given) == 1:
        return given
    if target == "torch.full":
        given = given[:1] if given and isinstance(given[0], (ast.Tuple, ast.List)) else []
    elif target not in _SIZED:
        return []
    if len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List)):
        given = list(given[0].elts)
    return [] if any(isinstance(each, ast.Starred) for each in given) else given

"""Loops that read a tensor, or a list of tensors, one element after the other."""

from __future__ import annotations

import ast

from perflint.frozen import dataclass
from perflint.semantics.around import Loop, loops_around, targets
from perflint.semantics.model import Model
from perflint.semantics.structure import names_in
from perflint.semantics.values import Sequence

_COUNTERS = ("builtins.range", "builtins.enumerate", "torch.arange")


@dataclass(frozen=True, slots=True)
class Element:
    """A read of one element in a loop over many."""

    loop: Loop
    whole: ast.expr
    """The container of the elements: a tensor, or a list, tuple or dict of tensors."""


def element_read(model: Model, node: ast.expr, tensor: ast.expr) -> Element | None:
    """The loop over the elements of which `node` reads `tensor`; None if it reads something else."""
    tensor = without_detach(tensor)
    for loop in loops_around(model, node):
        for target, iterable in targets(loop):
            bound = names_in(target)
            if isinstance(tensor, ast.Name) and tensor.id in bound:
                whole = _gone_over(model, target, iterable, tensor.id)
                return None if whole is None else Element(loop, whole)
            if not isinstance(tensor, ast.Subscript) or not _counts(model, iterable):
                continue
            if names_in(tensor.slice) & bound and not names_in(tensor.value) & bound:
                return Element(loop, tensor.value)
    return None


def without_detach(node: ast.expr) -> ast.expr:
    """The tensor whose graph `.detach()` drops."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
        node = node.func.value
    return node


def _counts(model: Model, iterable: ast.expr) -> bool:
    """True if a loop iterates over numbers that serve as indices."""
    return isinstance(iterable, ast.Call) and model.target(iterable) in _COUNTERS


def _gone_over(model: Model, target: ast.expr, iterable: ast.expr, name: str) -> ast.expr | None:
    """The collection whose elements `name` takes one by one; None if it takes anything else."""
    if isinstance(iterable, ast.Call):
        return _through_call(model, target, iterable, name)
    if not isinstance(target, ast.Name):
        return None
    value = model.value(iterable)
    holds = value.tensor is not None or any(
        isinstance(member, Sequence) and member.type in ("list", "tuple") and member.element.tensor is not None
        for member in value.members
    )
    return iterable if holds else None


def _through_call(model: Model, target: ast.expr, call: ast.Call, name: str) -> ast.expr | None:
    called = model.target(call)
    parts = target.elts if isinstance(target, ast.Tuple) else []
    if called == "builtins.enumerate" and len(parts) == 2 and call.args:
        return _gone_over(model, parts[1], call.args[0], name)
    if called == "builtins.zip" and len(parts) == len(call.args):
        for part, argument in zip(parts, call.args, strict=True):
            if isinstance(part, ast.Name) and part.id == name:
                return _gone_over(model, part, argument, name)
        return None
    if isinstance(call.func, ast.Attribute) and not call.args:
        if call.func.attr == "values" and isinstance(target, ast.Name):
            return call.func.value
        if call.func.attr == "items" and len(parts) == 2 and isinstance(parts[1], ast.Name) and parts[1].id == name:
            return call.func.value
    if isinstance(target, ast.Name) and model.value(call).tensor is not None:
        return call
    return None

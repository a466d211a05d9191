"""Loops that cannot go on before the CPU has read a number."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from perflint.semantics.around import loops_around
from perflint.semantics.model import Model
from perflint.semantics.structure import names_in, walk
from perflint.semantics.values import Device, Tensor

_LEAVES = (ast.Break, ast.Return, ast.Continue, ast.Raise)


def waits_for_number(model: Model, node: ast.expr) -> bool:
    """True if the loop around a node reads another number in each iteration, which decides if it goes on."""
    loop = next(loops_around(model, node), None)
    if isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return any(_is_read(model, each) for decides in _decisions(loop) for each in walk(decides) if each is not node)
    return False


def _decisions(loop: ast.For | ast.AsyncFor | ast.While) -> Iterator[ast.expr]:
    """The tests that end a loop or an iteration of it, and the values of the names in its own test."""
    asked = names_in(loop.test) if isinstance(loop, ast.While) else set()
    if isinstance(loop, ast.While):
        yield loop.test
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and any(names_in(target) & asked for target in statement.targets):
            yield statement.value
        if isinstance(statement, ast.If) and any(isinstance(each, _LEAVES) for each in statement.body):
            yield statement.test


def _is_read(model: Model, node: ast.AST) -> bool:
    """True for `x.item()` of anything but a tensor that is known to be on the CPU."""
    if not is_item(node) or not isinstance(node.func, ast.Attribute):
        return False
    held = model.value(node.func.value)
    return not (isinstance(held, Tensor) and held.device is Device.CPU)


def is_item(node: ast.AST) -> TypeGuard[ast.Call]:
    """True for a call `x.item()`."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    return isinstance(node.func, ast.Attribute) and node.func.attr == "item"

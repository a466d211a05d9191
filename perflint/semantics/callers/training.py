"""Decides if the calls that lead to a function are known, and no training is among them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perflint.semantics.heat.training import is_in_training
from perflint.semantics.memo import once_per_node
from perflint.semantics.structure import FunctionInfo, FunctionNode

if TYPE_CHECKING:
    from perflint.semantics.heated import Heated

_MOST_CALLERS = 32
"""Functions of a file that lead to one, and are looked at."""


def is_outside_training(model: Heated, function: FunctionNode) -> bool:
    """True if calls of a function of the file are known, and none that leads to it belongs to a training."""
    return _is_of_training(model, function) is False


def is_of_training(model: Heated, function: FunctionNode) -> bool:
    """True if a call that is known to lead to a function of the file belongs to a training."""
    return _is_of_training(model, function) is True


@once_per_node
def _is_of_training(model: Heated, function: FunctionNode) -> bool | None:
    """Whether calls that lead to a function belong to a training; None if no call is known."""
    if isinstance(function, ast.Lambda) or is_in_training(model, function.body[0]):
        return True
    first = model.module.defined_by(function)
    waiting = [] if first is None else [first]
    seen: set[FunctionInfo] = set(waiting)
    is_called = False
    for info in waiting:
        if model.heat_map.is_given_away(info):
            return True
        for call in model.heat_map.callers(info):
            if is_in_training(model, model.heat_map.place(call, info)):
                return True
            is_called = True
            caller = _caller(model, call)
            if caller is not None and caller not in seen and len(waiting) < _MOST_CALLERS:
                seen.add(caller)
                waiting.append(caller)
        for other in () if model.callers is None else model.callers.leading_to(info):
            if other.trains:
                return True
            is_called = True
    return False if is_called else None


def _caller(model: Heated, call: ast.AST) -> FunctionInfo | None:
    return model.module.defined_by(model.function(call))

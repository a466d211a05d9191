"""Decides if the calls that lead to a function are known, and no training is among them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perflint.semantics.heat.training import is_in_training
from perflint.semantics.memo import once_per_node
from perflint.semantics.structure import FunctionInfo, FunctionNode

if TYPE_CHECKING:
    from perflint.semantics.model import Model

_MOST_CALLERS = 32
"""Functions of a file that lead to one, and are looked at."""


@once_per_node
def is_outside_training(model: Model, function: FunctionNode) -> bool:
    """True if calls of a function of the file are known, and none that leads to it belongs to a training."""
    if isinstance(function, ast.Lambda) or is_in_training(model, function.body[0]):
        return False
    first = model.module.defined_by(function)
    waiting = [] if first is None else [first]
    seen: set[FunctionInfo] = set(waiting)
    is_called = False
    for info in waiting:
        if model.heat_map.is_given_away(info):
            return False
        for call in model.heat_map.callers(info):
            if is_in_training(model, call):
                return False
            is_called = True
            caller = _caller(model, call)
            if caller is not None and caller not in seen and len(waiting) < _MOST_CALLERS:
                seen.add(caller)
                waiting.append(caller)
        for other in () if model.callers is None else model.callers.leading_to(info):
            if other.trains:
                return False
            is_called = True
    return is_called


def _caller(model: Model, call: ast.Call) -> FunctionInfo | None:
    return model.module.defined_by(model.function(call))

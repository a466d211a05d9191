"""Branches for data with gaps: a function of the project fills the NaNs of an argument."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perflint.semantics.heat.guards import innermost
from perflint.semantics.structure import last_name, names_in, walk
from perflint.semantics.values import Function

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred

_ASKS = frozenset({"isnan", "is_nan"})


def fills_gaps(model: Inferred, test: ast.expr, branch: Sequence[ast.AST]) -> bool:
    """True if a branch computes a result of an argument that has NaNs: `if torch.isnan(x).any(): x = interpolate(x)`.

    NaNs of a loss are a fault, and rare. A function that computes with them treats them as missing data.
    """
    name = _asked(test)
    if not name or not _is_argument(model, test, name):
        return False
    values = (part.value for part in branch if isinstance(part, (ast.Assign, ast.Return)) and part.value is not None)
    return any(_takes(model, value, name) for value in values)


def _takes(model: Inferred, value: ast.expr, name: str) -> bool:
    """True if an expression has a call of a function of the project with a variable among the arguments."""
    calls = (node for node in walk(value) if isinstance(node, ast.Call))
    return any(
        isinstance(model.value(call.func), Function)
        and any(name in names_in(given) for given in (*call.args, *(each.value for each in call.keywords)))
        for call in calls
    )


def _asked(test: ast.expr) -> str:
    """The name `x` of `torch.isnan(x).any()` and `bool(x.isnan().any())`; "" for all other tests."""
    call = innermost(test, _ASKS.__contains__)
    if not isinstance(call, ast.Call) or last_name(call) not in _ASKS:
        return ""
    data = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else None
    return data.id if isinstance(data, ast.Name) else ""


def _is_argument(model: Inferred, test: ast.expr, name: str) -> bool:
    """True if a name is a parameter, also one that a function of the project has prepared before a test."""
    function = model.function(test)
    if function is None or isinstance(function, ast.Lambda):
        return False
    own, _ = model.parameters(function)
    stores = (node for node in walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    before = (model.parent(node) for node in stores if node.id == name and node.lineno < test.lineno)
    return name in own and all(isinstance(each, ast.Assign) and _takes(model, each.value, name) for each in before)

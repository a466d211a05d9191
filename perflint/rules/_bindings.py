"""The value of a plain name that only one statement of its function binds."""

from __future__ import annotations

import ast

from perflint.semantics.binders import How
from perflint.semantics.model import Model


def assigned(model: Model, use: ast.Name) -> ast.expr | None:
    """The value of a name that one statement of its function binds, before the use, to one expression."""
    variable = model.symbols.variable(use)
    if len(variable.bindings) != 1 or variable.scope.node is not (model.function(use) or model.source.tree):
        return None
    (binding,) = variable.bindings
    if binding.how is not How.ASSIGNED or binding.line > use.lineno:
        return None
    statement = model.parent(binding.node)
    if isinstance(statement, (ast.Tuple, ast.List)):
        statement = model.parent(statement)
    return statement.value if isinstance(statement, ast.Assign) else None


def alone(model: Model, use: ast.Name) -> ast.expr | None:
    """As `assigned`, but only if the name gets the whole value, not one of several as in `a, b = value`."""
    found = assigned(model, use)
    if found is None:
        return None
    statement = model.parent(found)
    whole = isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets)
    return found if whole else None

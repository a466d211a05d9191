"""The value of a plain name that only one statement of its function binds."""

from __future__ import annotations

import ast

from perflint.semantics.model import Model
from perflint.semantics.structure import walk


def assigned(model: Model, use: ast.Name) -> ast.expr | None:
    """The value of a name that one statement of its function binds, before the use, to one expression."""
    function = model.function(use)
    bound = [
        each
        for each in walk(function or model.source.tree)
        if isinstance(each, ast.Name)
        and each.id == use.id
        and isinstance(each.ctx, ast.Store)
        and model.function(each) is function
    ]
    if len(bound) != 1 or bound[0].lineno > use.lineno:
        return None
    statement = model.parent(bound[0])
    if isinstance(statement, (ast.Tuple, ast.List)):
        statement = model.parent(statement)
    return statement.value if isinstance(statement, ast.Assign) else None


def alone(model: Model, use: ast.Name) -> ast.expr | None:
    """As `assigned`, of a name that is bound by itself: not to a part of what is assigned."""
    found = assigned(model, use)
    if found is None:
        return None
    statement = model.parent(found)
    whole = isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets)
    return found if whole else None

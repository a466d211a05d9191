"""The value of a plain name that only one statement of its function binds."""

from __future__ import annotations

import ast

from perflint.semantics.binders import Binding, How
from perflint.semantics.model import Model


def assigned(model: Model, use: ast.Name) -> ast.expr | None:
    """The expression that a name gets its value from, if one statement of its function binds it, before the use."""
    binding = _binding(model, use)
    return None if binding is None else binding.value


def alone(model: Model, use: ast.Name) -> ast.expr | None:
    """As `assigned`, but only if the name gets the whole value, not one of several as in `a, b = value`."""
    binding = _binding(model, use)
    return binding.value if binding is not None and binding.whole else None


def _binding(model: Model, use: ast.Name) -> Binding | None:
    variable = model.symbols.variable(use)
    if len(variable.bindings) != 1 or variable.scope.node is not (model.function(use) or model.source.tree):
        return None
    (binding,) = variable.bindings
    return binding if binding.how is How.ASSIGNED and binding.line <= use.lineno else None

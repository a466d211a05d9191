"""The values that statements give to plain names."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from perflint.semantics.binders import Binding, How
from perflint.semantics.model import Model
from perflint.semantics.structure import names_in, walk


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


def derived(code: ast.AST, names: Iterable[str]) -> set[str]:
    """Some names, and those that the statements in some code make of them."""
    found = set(names)
    for _ in range(2):
        for node in walk(code):
            if isinstance(node, ast.Assign) and names_in(node.value) & found:
                found |= {name for target in node.targets for name in names_in(target)}
            elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)) and names_in(node.iter) & found:
                found |= names_in(node.target)
            elif isinstance(node, (ast.With, ast.AsyncWith)):
                for item in node.items:
                    if item.optional_vars is not None and names_in(item.context_expr) & found:
                        found |= names_in(item.optional_vars)
    return found

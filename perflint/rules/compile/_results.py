"""The call of torch.compile whose result an expression is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.rules._memory.flows import made
from perflint.semantics.model import Model
from perflint.semantics.structure import path_of

COMPILE = "torch.compile"


def compiling(model: Model, node: ast.expr) -> ast.Call | None:
    """The call of torch.compile that returned a value; None if other code did, or if it is not known."""
    source = made(model, node)
    if isinstance(source, ast.Call):
        return _as_compiling(model, source)
    path = path_of(node)
    *_, last = [None, *_assigned(model, node, path)] if path else [None]
    return None if last is None else _as_compiling(model, made(model, last))


def _as_compiling(model: Model, value: ast.expr) -> ast.Call | None:
    return value if isinstance(value, ast.Call) and model.target(value) == COMPILE else None


def _assigned(model: Model, node: ast.expr, path: str) -> Iterator[ast.expr]:
    """The values that assignments in front of a place give to a path, in its function or in the code around that.

    An attribute of `self` gets its value in any method.
    """
    place, function = node.lineno, model.function(node)
    while isinstance(node, ast.Attribute):
        node = node.value
    if isinstance(node, ast.Name) and node.id != "self":
        home = model.symbols.variable(node).scope.node
        place, function = (place, function) if home is function else (len(model.source.lines) + 1, None)
    for assignment in model.nodes(ast.Assign):
        is_seen = path.startswith("self.") or (model.function(assignment) is function and assignment.lineno < place)
        if is_seen and any(path_of(target) == path for target in assignment.targets):
            yield assignment.value

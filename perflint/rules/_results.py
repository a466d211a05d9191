"""The call of a wrapper, such as torch.compile, whose result an expression is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.rules._memory.flows import made
from perflint.rules._sources import returned, sources
from perflint.semantics.model import Model
from perflint.semantics.structure import path_of

COMPILE = "torch.compile"


def result_of(model: Model, node: ast.expr, *functions: str) -> ast.Call | None:
    """The call of one of some functions that returned a value; None if other code did, or if it is not known."""
    source = made(model, node)
    if not isinstance(source, ast.Call):
        path = path_of(node)
        *_, last = [None, *_assigned(model, node, path)] if path else [None]
        source = node if last is None else made(model, last)
    if isinstance(source, ast.Call) and returned(model, source):
        found = sources(model, source)
        source = found[0] if len(found) == 1 else source
    return source if isinstance(source, ast.Call) and model.target(source) in functions else None


def _assigned(model: Model, node: ast.expr, path: str) -> Iterator[ast.expr]:
    """The values that assignments in front of a place give to a path, in its function or in the code around that.

    An attribute of `self` gets its value in any method of the class.
    """
    owner = _class_around(model, node)
    place, function = node.lineno, model.function(node)
    while isinstance(node, ast.Attribute):
        node = node.value
    if isinstance(node, ast.Name) and node.id != "self":
        home = model.symbols.variable(node).scope.node
        place, function = (place, function) if home is function else (len(model.source.lines) + 1, None)
    for assignment in model.nodes(ast.Assign):
        if not any(path_of(target) == path for target in assignment.targets):
            continue
        if path.startswith("self."):
            is_seen = _class_around(model, assignment) is owner
        else:
            is_seen = model.function(assignment) is function and assignment.lineno < place
        if is_seen:
            yield assignment.value


def _class_around(model: Model, node: ast.AST) -> ast.ClassDef | None:
    return next((outer for outer in model.ancestors(node) if isinstance(outer, ast.ClassDef)), None)

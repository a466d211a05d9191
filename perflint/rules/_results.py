"""The call of a wrapper, such as torch.compile, whose result an expression is."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from perflint.rules._memory.flows import made
from perflint.rules._sources import returned, sources
from perflint.semantics.around import class_around
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import CONSTRUCTORS, grouped, path_of

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
    """The values that assignments in front of a place give to a path, in its function or in the code around that."""
    if path.startswith("self."):
        yield from _assigned_to_self(model, node, path)
        return
    place, function = node.lineno, model.function(node)
    while isinstance(node, ast.Attribute):
        node = node.value
    if isinstance(node, ast.Name):
        home = model.symbols.variable(node).scope.node
        place, function = (place, function) if home is function else (len(model.source.lines) + 1, None)
    for assignment in assignments(model).get(path, ()):
        if model.function(assignment) is function and assignment.lineno < place:
            yield assignment.value


@once
def assignments(model: Model) -> Mapping[str, list[ast.Assign]]:
    """The assignments of the file by the paths that they assign to."""
    assigning = model.nodes(ast.Assign)
    return grouped((path, each) for each in assigning for path in {path_of(target) for target in each.targets})


def _assigned_to_self(model: Model, node: ast.expr, path: str) -> list[ast.expr]:
    """The values that the methods of a class give to an attribute, those of constructors first.

    Other methods may run in any order: they are in that of their names.
    """
    owner = class_around(model, node)
    found: list[tuple[bool, str, ast.expr]] = []
    for assignment in assignments(model).get(path, ()):
        if class_around(model, assignment) is owner:
            function = model.function(assignment)
            name = function.name if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else ""
            found.append((name not in CONSTRUCTORS, name, assignment.value))
    return [value for *_, value in sorted(found, key=lambda each: each[:2])]

"""Names that a loop adds to: where they begin, and who else sees them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.rules._places import inside
from perflint.semantics.model import Model
from perflint.semantics.structure import walk

Loop = ast.For | ast.AsyncFor | ast.While
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def loop_around(model: Model, node: ast.AST) -> Loop | None:
    """The innermost loop statement whose body a statement belongs to."""
    inner = node
    for outer in inside(model, node):
        if isinstance(outer, LOOPS) and isinstance(inner, ast.stmt) and inner in outer.body:
            return outer
        inner = outer
    return None


def names(node: ast.AST, name: str) -> Iterator[ast.Name]:
    """The places in a node that speak of a plain name."""
    yield from (part for part in walk(node) if isinstance(part, ast.Name) and part.id == name)


def is_bound_before(model: Model, loop: Loop, name: str) -> bool:
    """Whether the function, or the file, around a loop binds a name before it."""
    function = model.function(loop)
    for each in model.nodes(ast.Name):
        if each.id == name and isinstance(each.ctx, ast.Store) and model.function(each) is function:
            if (each.lineno, each.col_offset) < (loop.lineno, loop.col_offset):
                return True
    return False


def body_of(model: Model, node: ast.AST) -> ast.AST:
    """The function around a node, or the whole file."""
    return model.function(node) or model.source.tree

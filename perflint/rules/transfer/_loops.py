"""Names that a loop adds to: their first values, and the other code that sees them."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from perflint.rules._memory.flows import body_around
from perflint.rules._statements import outward_in_function
from perflint.semantics.binders import LOOPS
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.structure import stands_in, walk

Loop = ast.For | ast.AsyncFor | ast.While


def loop_around(model: Model, node: ast.AST) -> Loop | None:
    """The innermost loop statement whose body a statement belongs to."""
    around = outward_in_function(model, node)
    return next((outer for outer, inner in around if isinstance(outer, LOOPS) and stands_in(outer.body, inner)), None)


def is_bound_before(model: Model, loop: Loop, name: str) -> bool:
    """True if the function, or the file, around a loop binds a name before it."""
    first = _first_bindings(model, body_around(model, loop)).get(name)
    return first is not None and first < (loop.lineno, loop.col_offset)


@once_per_node
def _first_bindings(model: Model, body: ast.AST) -> Mapping[str, tuple[int, int]]:
    """The places at which a function or file first binds each of its names."""
    found: dict[str, tuple[int, int]] = {}
    for part in walk(body):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and body_around(model, part) is body:
            place = part.lineno, part.col_offset
            found[part.id] = min(place, found.get(part.id, place))
    return found

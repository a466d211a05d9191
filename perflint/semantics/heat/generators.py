"""Where generators run: the body of a loop over their results runs once for each."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perflint.semantics.binders import DEFINITIONS, LOOPS
from perflint.semantics.structure import children, last_name

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred
    from perflint.semantics.structure import FunctionInfo


_TAKES_ALL = frozenset("list tuple set frozenset dict sorted sum min max any all".split())
"""Functions of Python that take all results of a generator at once."""


def consumer(model: Inferred, call: ast.expr | ast.stmt) -> ast.AST:
    """The first statement of the loop that goes over the results of a call; the call itself if none does.

    `for batch in tqdm(batches(x))`, or `found = batches(x)` and then `for batch in found`.
    """
    outer = _outermost(model, call)
    parent = model.parent(outer)
    loop = _loop_over(model, outer)
    if loop is None and isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
        around = model.function(call) or model.module.tree
        uses = (name for name in model.names(around, parent.targets[0].id) if isinstance(name.ctx, ast.Load))
        for use in uses:
            loop = loop or _loop_over(model, _outermost(model, use))
    return call if loop is None else loop.body[0]


def _outermost(model: Inferred, node: ast.expr | ast.stmt) -> ast.expr | ast.stmt:
    """The outermost call that goes over an expression bit by bit: `tqdm(zip(x, y))`."""
    parent = model.parent(node)
    while isinstance(parent, ast.Call) and node in parent.args and last_name(parent) not in _TAKES_ALL:
        node, parent = parent, model.parent(parent)
    return node


def _loop_over(model: Inferred, node: ast.AST) -> ast.For | ast.AsyncFor | None:
    parent = model.parent(node)
    return parent if isinstance(parent, (ast.For, ast.AsyncFor)) and node is parent.iter else None


def runs_by_result(info: FunctionInfo, statement: ast.AST) -> bool:
    """True if a statement of a generator runs once for each result, or has a loop that does.

    The rest of a generator with such a loop runs once for all results.
    """
    return not isinstance(info.node, ast.Lambda) and (yields(statement) or not any(map(_is_yielding, info.node.body)))


def _is_yielding(statement: ast.AST) -> bool:
    return isinstance(statement, LOOPS) and yields(statement)


def yields(node: ast.AST) -> bool:
    """True if a statement gives a result of the generator that it belongs to."""
    waiting = [node]
    for each in waiting:
        if isinstance(each, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(each, (*DEFINITIONS, ast.Lambda)):
            waiting += children(each)
    return False

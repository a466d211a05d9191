"""The statement that an expression belongs to, and the block that it stands in."""

from __future__ import annotations

import ast

from perflint.rules._places import inside
from perflint.semantics.model import Model

_TRIES = (ast.Try, ast.TryStar)


def statement_of(model: Model, node: ast.AST) -> ast.stmt | None:
    """The innermost statement that a node belongs to."""
    if isinstance(node, ast.stmt):
        return node
    return next((outer for outer in model.ancestors(node) if isinstance(outer, ast.stmt)), None)


def block_of(model: Model, statement: ast.stmt) -> list[ast.stmt]:
    """The statements among which a statement stands, itself included; only itself where that cannot be told."""
    parent = model.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]


def swallows(model: Model, node: ast.AST) -> bool:
    """Whether the function around a node may go on after an error in it: in a handler, or behind a `with`."""
    inner = node
    for outer in inside(model, node):
        if isinstance(outer, _TRIES) and inner in outer.body:
            return True
        if isinstance(outer, (ast.With, ast.AsyncWith)) and not all(_lets_pass(model, item) for item in outer.items):
            return True
        inner = outer
    return False


def _lets_pass(model: Model, item: ast.withitem) -> bool:
    """Whether a context is one of torch's, which let errors pass."""
    call = item.context_expr
    return isinstance(call, ast.Call) and model.target(call).startswith("torch.")

"""The statement that an expression belongs to, and the block that it stands in."""

from __future__ import annotations

import ast

from perflint.semantics.model import Model


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

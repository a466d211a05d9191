"""Decides if a switch is set only under a condition that is decided at run time."""

from __future__ import annotations

import ast

from perflint.semantics.model import Model


def is_guarded(model: Model, node: ast.AST) -> bool:
    """True if a condition decides whether a node runs; `if __name__ == "__main__":` does not count."""
    inner = node
    for outer in model.ancestors(node):
        if is_condition(outer) or isinstance(outer, ast.ExceptHandler):
            return True
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)) and _follows_return(outer, inner):
            return True
        inner = outer
    return False


def is_condition(outer: ast.AST) -> bool:
    """True if a node decides whether its parts run; `if __name__ == "__main__":` does not count."""
    return isinstance(outer, (ast.IfExp, ast.BoolOp)) or (isinstance(outer, ast.If) and not _is_program(outer.test))


def _is_program(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _follows_return(function: ast.FunctionDef | ast.AsyncFunctionDef, node: ast.AST) -> bool:
    """True if a statement of a function stands behind an `if not debug: return`."""
    if node not in function.body:
        return False
    before = function.body[: function.body.index(node)]
    return any(isinstance(each, ast.If) and isinstance(each.body[-1], ast.Return) for each in before)

"""Decides if a switch is set only under a condition that is decided at run time, or something is made only once."""

from __future__ import annotations

import ast

from perflint.findings import Heat
from perflint.rules._statements import outward
from perflint.semantics.binders import LOOPS
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, names_in, walk

_CACHES = frozenset({"cache", "lru_cache", "cached_property"})
_TESTS = (ast.Is, ast.IsNot, ast.In, ast.NotIn, ast.Eq, ast.NotEq)


def is_guarded(model: Model, node: ast.AST) -> bool:
    """True if a condition decides whether a node runs; `if __name__ == "__main__":` does not count."""
    return any(
        is_condition(outer) or isinstance(outer, ast.ExceptHandler) or _follows_return(outer, inner)
        for outer, inner in outward(model, node)
    )


def is_condition(outer: ast.AST) -> bool:
    """True if a node decides whether its parts run; `if __name__ == "__main__":` does not count."""
    return isinstance(outer, (ast.IfExp, ast.BoolOp)) or (isinstance(outer, ast.If) and not _is_program(outer.test))


def _is_program(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _follows_return(function: ast.AST, node: ast.AST) -> bool:
    """True if a statement of a function stands behind an `if not debug: return`."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or node not in function.body:
        return False
    before = function.body[: function.body.index(node)]
    return any(isinstance(each, ast.If) and isinstance(each.body[-1], ast.Return) for each in before)


def is_done_once(model: Model, made: ast.AST) -> bool:
    """True if something remembers the result, or a test keeps it from being made again."""
    is_looped = False
    for outer, inner in outward(model, made):
        if isinstance(outer, (ast.If, ast.IfExp, ast.While)) and inner is not outer.test:
            if _asks_whether_done(outer.test):
                return True
        if isinstance(outer, (ast.Try, ast.With)) and not is_looped and not _is_of_torch(model, outer):
            return True
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return any(last_name(each) in _CACHES for each in outer.decorator_list)
        if isinstance(outer, (ast.For, ast.AsyncFor)) and names_in(outer.target) & names_in(made):
            # Each layer of a model, each iteration another; in each step, it is all of them again.
            return model.heat(outer) is not Heat.HOT
        is_looped = is_looped or isinstance(outer, LOOPS)
    return False


def _asks_whether_done(test: ast.expr) -> bool:
    for node in walk(test):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], _TESTS):
            return True
        if isinstance(node, ast.Call) and last_name(node) in ("hasattr", "isinstance", "getattr"):
            return True
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return True
    return False


def _is_of_torch(model: Model, node: ast.Try | ast.With) -> bool:
    """True for a context of torch, such as `torch.no_grad()`: its block runs as often as the code around it."""
    items = node.items if isinstance(node, ast.With) else []
    called = [each.context_expr.func for each in items if isinstance(each.context_expr, ast.Call)]
    return bool(items) and all(model.symbols.full_name(each).startswith("torch.") for each in called)

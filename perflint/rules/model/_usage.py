"""How the result of a call is used."""

from __future__ import annotations

import ast

from perflint.semantics.model import Model
from perflint.semantics.structure import walk


def first_item_only(model: Model, call: ast.Call) -> bool:
    """True if of the pair that a call returns only the first item can be read: `y, _ = f()`, `f()[0]`."""
    parent = model.parent(call)
    if isinstance(parent, ast.Subscript):
        return _is_zero(parent.slice)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return False
    (target,) = parent.targets
    if isinstance(target, ast.Name):
        return _only_its_first_is_read(model, call, target.id)
    if not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) != 2:
        return False
    second = target.elts[1]
    name = second.value if isinstance(second, ast.Starred) else second
    return isinstance(name, ast.Name) and is_unread(model, call, name.id)


def is_unread(model: Model, at: ast.AST, name: str) -> bool:
    """True if nothing in the scope of `at` reads a local name; names of modules and classes may be read outside."""
    scope = _scope(model, at)
    if scope is None and name != "_":
        return False
    if model.symbols.declares(scope, name):
        return False
    return not any(_reads(node, name) for node in walk(scope or model.source.tree))


def _scope(model: Model, at: ast.AST) -> ast.AST | None:
    function = model.function(at)
    if isinstance(function, ast.Lambda):
        return model.function(function)
    return function


def _reads(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Name) and node.target.id == name
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _only_its_first_is_read(model: Model, call: ast.Call, name: str) -> bool:
    """True if a pair's name, bound once in its function, is only ever indexed by 0."""
    scope = _scope(model, call)
    if scope is None:
        return False
    uses = [node for node in walk(scope) if isinstance(node, ast.Name) and node.id == name]
    reads = [node for node in uses if isinstance(node.ctx, ast.Load)]
    if model.symbols.declares(scope, name) or not reads or len(uses) - len(reads) != 1:
        return False
    return all(_is_first(model.parent(node), node) for node in reads)


def _is_first(parent: ast.AST | None, node: ast.Name) -> bool:
    if not isinstance(parent, ast.Subscript) or parent.value is not node:
        return False
    return isinstance(parent.ctx, ast.Load) and _is_zero(parent.slice)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0 and node.value is not False

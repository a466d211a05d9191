"""Calls of a file by the last part of their name, for methods of objects of unknown classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite, FileSite


def calls_named(site: FileSite, *names: str) -> Iterator[CallSite]:
    """The method calls of a file whose last name is one of some, in source order; their target may be empty."""
    model = site.model
    for call in model.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in names:
            yield model.call(call)


def called_on(model: Model, node: ast.AST) -> ast.Call | None:
    """The call of a method of a value at the place where the value is used: `x.m()` for `x`."""
    method = model.parent(node)
    call = model.parent(method) if isinstance(method, ast.Attribute) else None
    return call if isinstance(call, ast.Call) and call.func is method else None


def in_tests(model: Model) -> bool:
    """True if a file belongs to the tests of its project."""
    return model.module.is_of_tests


def serves_tests(model: Model) -> bool:
    """True if a file belongs to the tests of its project, or holds helpers of tests."""
    return model.module.serves_tests


def is_self(node: ast.AST | None) -> bool:
    """True if an expression is the plain name `self`."""
    return isinstance(node, ast.Name) and node.id == "self"


def is_self_or_cls(node: ast.AST | None) -> bool:
    """True if an expression is the plain name `self` or `cls`."""
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def is_true(node: ast.expr | None) -> bool:
    """True if an argument is a literal True."""
    return isinstance(node, ast.Constant) and node.value is True


def is_false(node: ast.expr | None) -> bool:
    """True if an argument is a literal False."""
    return isinstance(node, ast.Constant) and node.value is False

"""Who may write to a tensor in its function: by its own name, or by one that shares its memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.rules._methods import is_false
from perflint.rules.transfer._loops import body_of
from perflint.rules.transfer._reads import KEEPS, shared
from perflint.semantics.model import Model
from perflint.semantics.structure import path_of, walk
from perflint.semantics.values import Const, Instance, Scalar

_KNOWN = ("torch.", "builtins.", "math.", "numpy.", "typing.", "warnings.", "logging.", "operator.", "functools.")
_CHANGES = (*KEEPS, "torch.optim.", "torch._foreach", "torch.Tensor.backward", "torch.Tensor.register_hook")
_HANDS_ON = ("builtins.zip", "builtins.enumerate", "builtins.list", "builtins.tuple", "builtins.iter", "builtins.next")


def sharing(model: Model, node: ast.expr) -> set[str]:
    """The names and paths in a function that may share memory with an expression in it."""
    found = set(_sources(model, node))
    links = list(_links(model, body_of(model, node)))
    grows = True
    while grows:
        grows = False
        for link in links:
            if not link.isdisjoint(found) and not link <= found:
                found |= link
                grows = True
    return found


def _links(model: Model, function: ast.AST) -> Iterator[set[str]]:
    """Names that a statement makes one tensor, or one and a view of it."""
    for node in walk(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            value = node.value
        elif isinstance(node, (ast.For, ast.comprehension)):
            targets, value = [node.target], node.iter
        else:
            continue
        sources = set(_sources(model, value))
        if sources:
            yield sources | {path for target in targets for path in _targets(model, target)}


def _targets(model: Model, target: ast.expr) -> Iterator[str]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            yield from _targets(model, each)
    elif isinstance(target, ast.Starred):
        yield from _targets(model, target.value)
    elif isinstance(target, (ast.Name, ast.Attribute)) and path_of(target):
        yield path_of(target)
    elif isinstance(target, ast.Subscript) and not model.value(target.value).tensor:
        # A list or dict that holds it from now on.
        yield from _targets(model, target.value)


def _sources(model: Model, value: ast.expr) -> Iterator[str]:
    """What an expression may share memory with."""
    value = shared(model, value)
    if isinstance(value, (ast.Name, ast.Attribute)):
        if path_of(value):
            yield path_of(value)
    elif isinstance(value, ast.Call):
        if not is_known(model, value) or model.target(value) in _HANDS_ON:
            for each in (*value.args, *(keyword.value for keyword in value.keywords)):
                yield from _sources(model, each)
            receiver = value.func.value if isinstance(value.func, ast.Attribute) else None
            if receiver is not None and not isinstance(model.value(receiver), Instance) and path_of(receiver) != "self":
                yield from _sources(model, receiver)
    elif isinstance(value, (ast.IfExp, ast.BoolOp, ast.Tuple, ast.List, ast.Starred, ast.NamedExpr, ast.Await)):
        for inner in ast.iter_child_nodes(value):
            if isinstance(inner, ast.expr):
                yield from _sources(model, inner)


def is_known(model: Model, call: ast.Call) -> bool:
    """Whether a call is one of torch, of Python or of NumPy, which write to nothing but what their names say."""
    target = model.target(call)
    return target.startswith(_KNOWN) and not target.startswith(_CHANGES)


def written_in_place(node: ast.AST) -> ast.expr | None:
    """What a node writes to: a store into it, a method that ends in "_", an argument `out`."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return node.value
    if isinstance(node, ast.AugAssign):
        return node.target
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_") and not node.func.attr.endswith("__"):
        return node.func.value
    return next((item.value for item in node.keywords if item.arg == "out"), None)


def writes(model: Model, function: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The places of a function that write to a tensor, each with the path of what they write to ("" for any)."""
    for node in walk(function):
        written = _written(model, node)
        for each in written:
            yield node, path_of(shared(model, each))


def _written(model: Model, node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return [node.value]
    if isinstance(node, ast.AugAssign) and not isinstance(node.target, ast.Subscript):
        return [] if isinstance(model.value(node.target), (Scalar, Const)) else [node.target]
    if not isinstance(node, ast.Call):
        return []
    found = [keyword.value for keyword in node.keywords if keyword.arg == "out"]
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    in_place = any(keyword.arg == "inplace" and not is_false(keyword.value) for keyword in node.keywords)
    if in_place or (name.endswith("_") and not name.endswith("__")):
        found += node.args[:1]
        if isinstance(node.func, ast.Attribute):
            found.append(node.func.value)
    return found

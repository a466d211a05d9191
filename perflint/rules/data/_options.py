"""The contents of `**options` of a call, if the same function writes them down."""

from __future__ import annotations

import ast

from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.structure import FunctionNode

Options = dict[str, ast.expr]


def options(model: Model, call: ast.Call) -> Options | None:
    """The arguments that a call unpacks by name; None if that is not known.

    Arguments that are added under a condition count, too.
    """
    found: Options = {}
    for item in call.keywords:
        if item.arg is None:
            part = _of(model, item.value, frozenset())
            if part is None:
                return None
            found |= part
    return None if any(isinstance(each, ast.Starred) for each in call.args) else found


def _of(model: Model, node: ast.expr, seen: frozenset[str]) -> Options | None:
    if isinstance(node, ast.Dict):
        return _of_display(model, node, seen)
    if isinstance(node, ast.Call) and model.target(node) == "builtins.dict" and not node.args:
        return _of_keywords(node)
    if isinstance(node, ast.Name) and node.id not in seen:
        return _of_name(model, node, seen | {node.id})
    return None


def _of_display(model: Model, node: ast.Dict, seen: frozenset[str]) -> Options | None:
    found: Options = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            part = _of(model, value, seen)
            if part is None:
                return None
            found |= part
        elif isinstance(key, ast.Constant) and isinstance(key.value, str):
            found[key.value] = value
        else:
            return None
    return found


def _of_keywords(call: ast.Call) -> Options | None:
    if any(item.arg is None for item in call.keywords):
        return None
    return {item.arg: item.value for item in call.keywords if item.arg is not None}


def _of_name(model: Model, name: ast.Name, seen: frozenset[str]) -> Options | None:
    """The entries that the statements of the function put into a name; None if one uses it otherwise."""
    function = model.function(name)
    known = _known(model, function or model.source.tree)
    if (name.id, seen) not in known:
        known[name.id, seen] = _of_uses(model, name, function, seen)
    return known[name.id, seen]


@once_per_node
def _known(model: Model, body: ast.AST) -> dict[tuple[str, frozenset[str]], Options | None]:
    """The options that names of a function or file hold, as far as they have been asked for."""
    return {}


def _of_uses(model: Model, name: ast.Name, function: FunctionNode | None, seen: frozenset[str]) -> Options | None:
    found: Options = {}
    bound = False
    for use in model.names(function or model.source.tree, name.id):
        if model.function(use) is not function:
            continue
        part = _of_use(model, use, seen)
        if part is None:
            return None
        bound = bound or isinstance(use.ctx, ast.Store)
        found |= part
    return found if bound else None


def _of_use(model: Model, use: ast.Name, seen: frozenset[str]) -> Options | None:
    parent = model.parent(use)
    if isinstance(use.ctx, ast.Store):
        return _of(model, parent.value, seen) if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
    if isinstance(parent, ast.keyword) and parent.arg is None:
        return {}
    if isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant):
        key, statement = parent.slice.value, model.parent(parent)
        if not isinstance(parent.ctx, ast.Store):
            return {}
        return {key: statement.value} if isinstance(statement, ast.Assign) and isinstance(key, str) else None
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "update":
        # Another dict is updated from this one.
        return {}
    call = model.parent(parent) if isinstance(parent, ast.Attribute) and parent.attr == "update" else None
    if not isinstance(call, ast.Call):
        return None
    found = _of_keywords(call)
    given = _of(model, call.args[0], seen) if call.args else {}
    return None if found is None or given is None else given | found

"""The contents of `**options` of a call, if the file writes them down."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.structure import path_of, walk

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
    if isinstance(node, (ast.Name, ast.Attribute)) and (path := path_of(node)) and path not in seen:
        return _of_holder(model, node, seen | {path})
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


def _of_holder(model: Model, holder: ast.Name | ast.Attribute, seen: frozenset[str]) -> Options | None:
    """The entries that the statements of the file put into a name or an attribute of `self`; None if one hides some."""
    uses = [*_uses(model, holder)]
    known = _known(model, uses[0]) if uses else {}
    if seen not in known:
        known[seen] = _of_uses(model, uses, seen)
    return known[seen]


def _uses(model: Model, holder: ast.Name | ast.Attribute) -> Iterator[ast.Name | ast.Attribute]:
    """The places that bind or read the same name or attribute; none if it is bound in another way."""
    if isinstance(holder, ast.Name):
        variable = model.symbols.variable(holder)
        bound = [binding.node for binding in variable.bindings]
        names = [node for node in bound if isinstance(node, ast.Name)]
        yield from (*names, *variable.uses) if len(names) == len(bound) else ()
    elif path_of(holder) == f"self.{holder.attr}":
        owner = next((outer for outer in model.ancestors(holder) if isinstance(outer, ast.ClassDef)), None)
        for part in walk(owner) if owner is not None else ():
            if isinstance(part, ast.Attribute) and path_of(part) == path_of(holder):
                yield part


@once_per_node
def _known(model: Model, holder: ast.AST) -> dict[frozenset[str], Options | None]:
    """The options that a name or attribute holds, as far as they have been asked for."""
    return {}


def _of_uses(model: Model, uses: list[ast.Name | ast.Attribute], seen: frozenset[str]) -> Options | None:
    found: Options = {}
    bound = False
    for use in uses:
        part = _of_use(model, use, seen)
        if part is None:
            return None
        bound = bound or isinstance(use.ctx, ast.Store)
        found |= part
    return found if bound else None


def _is_unpacked(display: ast.AST | None, use: ast.expr) -> bool:
    if not isinstance(display, ast.Dict):
        return False
    return any(key is None and value is use for key, value in zip(display.keys, display.values, strict=True))


def _of_use(model: Model, use: ast.Name | ast.Attribute, seen: frozenset[str]) -> Options | None:
    parent = model.parent(use)
    if isinstance(use.ctx, ast.Store):
        return _of(model, parent.value, seen) if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
    if (isinstance(parent, ast.keyword) and parent.arg is None) or _is_unpacked(parent, use):
        # Unpacked, in a call or another dict.
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

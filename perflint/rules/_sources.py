"""The expressions that may have made a value: through branches, attributes of the object, parameters and calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perflint.rules._memory.flows import flow_around, made
from perflint.rules._methods import called_on, is_self
from perflint.semantics.around import class_around
from perflint.semantics.memo import once_per_key, once_per_node
from perflint.semantics.model import FunctionNode, Model
from perflint.semantics.purpose.given import arguments_of_all
from perflint.semantics.structure import keyword, last_name, path_of, walk
from perflint.semantics.symbols import Variable


def sources(model: Model, node: ast.expr) -> list[ast.expr]:
    """The expressions that may have made a value, as far as the file shows them.

    A name stands for a value that the file does not show.
    """
    found, waiting, seen = [], [node], set()
    while waiting:
        each = made(model, waiting.pop())
        if each in seen:
            continue
        seen.add(each)
        before, is_whole = _before(model, each)
        waiting += before
        if not before or not is_whole:
            found.append(each)
    return found


def _before(model: Model, node: ast.expr) -> tuple[list[ast.expr], bool]:
    """The expressions of which one made the value of an expression, and True if these are all.

    There are none if the expression makes it itself.
    """
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse], True
    if isinstance(node, ast.Name):
        return _of_name(model, node)
    if isinstance(node, ast.Attribute) and path_of(node) == f"self.{node.attr}":
        return [*_stored(model, node)], True
    return (returned(model, node), True) if isinstance(node, ast.Call) else ([], True)


def _of_name(model: Model, use: ast.Name) -> tuple[list[ast.expr], bool]:
    """The values that assignments give to a name, or that calls pass for it; True if other code gives it none."""
    origins = flow_around(model, use).origins(use)
    if not origins:
        variable = model.symbols.variable(use)
        values = [*variable.assigned]
        return values, len(values) == len(variable.bindings)
    values = [each.value for each in origins if each.whole and each.value is not None]
    return (values, len(values) == len(origins)) if values else (arguments_of_all(model, use), True)


def _stored(model: Model, node: ast.Attribute) -> Sequence[ast.expr]:
    """The values that the class around an attribute of `self` gives it."""
    owner = class_around(model, node)
    return () if owner is None else _stored_in(model, owner).get(node.attr, ())


@once_per_node
def _stored_in(model: Model, owner: ast.ClassDef) -> Mapping[str, list[ast.expr]]:
    """The values that a class gives to the attributes of `self`, by attribute."""
    found: dict[str, list[ast.expr]] = {}
    for part in walk(owner):
        if isinstance(part, ast.Assign):
            for target in part.targets:
                if isinstance(target, ast.Attribute) and path_of(target.value) == "self":
                    found.setdefault(target.attr, []).append(part.value)
        elif isinstance(part, ast.Call) and path_of(part.func) == "self.register_buffer":
            name, tensor = given(part, "name", 0), given(part, "tensor", 1)
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and tensor is not None:
                found.setdefault(name.value, []).append(tensor)
    return found


def given(call: ast.Call, name: str, position: int) -> ast.expr | None:
    """The argument of a call that is passed by keyword or at a position."""
    return keyword(call, name) or (call.args[position] if position < len(call.args) else None)


def passed_to(model: Model, call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """The argument of a call by keyword or at a position, also out of a dict that `**` unpacks."""
    direct = keyword(call, name) if position is None else given(call, name, position)
    return direct if direct is not None else unpacked(model, call)[0].get(name)


def unpacked(model: Model, call: ast.Call) -> tuple[dict[str, ast.expr], bool]:
    """The arguments that `**` unpacks from dicts of the file, and True if a call gets no others by `*` or `**`.

    Entries that are added under a condition count, too.
    """
    found: dict[str, ast.expr] = {}
    is_all = not any(isinstance(each, ast.Starred) for each in call.args)
    for each in call.keywords:
        if each.arg is None:
            entries, is_known = _held(model, each.value, set())
            found |= entries
            is_all = is_all and is_known
    return found, is_all


def _held(model: Model, holder: ast.expr, seen: set[ast.expr]) -> tuple[dict[str, ast.expr], bool]:
    """The entries of a dict by their keys, and True if it certainly has no others."""
    found: dict[str, ast.expr] = {}
    is_all = True
    if holder in seen:
        return found, is_all
    seen.add(holder)
    for node in (*sources(model, holder), *_changes_of(model, holder)):
        for key, value in _entries(model, node):
            if key is None:
                entries, is_known = _held(model, value, seen)
                found |= entries
                is_all = is_all and is_known
            elif isinstance(key, str):
                found[key] = value
            else:
                is_all = False
    return found, is_all


def _entries(model: Model, node: ast.AST) -> Iterator[tuple[object, Any]]:
    """The entries that a node gives to a dict, by key: None for a dict that it unpacks, no text for unknown ones."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield key.value if isinstance(key, ast.Constant) else key, value
    elif isinstance(node, ast.Call) and (model.target(node) == "builtins.dict" or last_name(node) == "update"):
        yield from ((None, each) for each in node.args)
        yield from ((each.arg, each.value) for each in node.keywords)
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        key = node.targets[0].slice
        yield key.value if isinstance(key, ast.Constant) else key, node.value
    else:
        yield node, node


def _changes_of(model: Model, holder: ast.expr) -> list[ast.AST]:
    """The nodes that change the dict under a name or an attribute of `self` after it was made, or may do so."""
    if isinstance(holder, ast.Name):
        return _changes(model, model.symbols.variable(holder))
    owner = class_around(model, holder)
    if owner is None or not isinstance(holder, ast.Attribute) or not is_self(holder.value):
        return []
    return _changes(model, (owner, holder.attr))


@once_per_key
def _changes(model: Model, holder: Variable | tuple[ast.ClassDef, str]) -> list[ast.AST]:
    if isinstance(holder, Variable):
        uses: list[ast.expr] = [*holder.uses]
    else:
        owner, name = holder
        own = (part for part in walk(owner) if isinstance(part, ast.Attribute) and is_self(part.value))
        uses = [part for part in own if part.attr == name and isinstance(part.ctx, ast.Load)]
    return [change for use in uses if (change := _change(model, use)) is not None]


def _change(model: Model, use: ast.expr) -> ast.AST | None:
    """The node that changes a dict at one of its uses, or may; None if the use only reads it."""
    outer = model.parent(use)
    if isinstance(outer, ast.Subscript):
        return None if isinstance(outer.ctx, ast.Load) else model.parent(outer)
    is_unpacked = isinstance(outer, ast.keyword) and outer.arg is None
    is_merged = isinstance(outer, ast.Dict) or (isinstance(outer, ast.Call) and last_name(outer) == "update")
    return None if is_unpacked or is_merged else called_on(model, use) or use


def names_behind(model: Model, expressions: list[ast.expr]) -> list[ast.Name]:
    """The names that expressions are made of, also through other names."""
    found: list[ast.Name] = []
    waiting, seen = [*expressions], set()
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            names = [part for part in walk(each) if isinstance(part, ast.Name)]
            found += names
            waiting += [made(model, name) for name in names]
    return found


def called(model: Model, call: ast.Call) -> str:
    """The last part of the name of a called function, whatever the file calls it."""
    return model.target(call).rpartition(".")[2] or last_name(call)


def operands(model: Model, call: ast.Call) -> list[ast.expr]:
    """The tensor that a function gets, or that a method belongs to, and the arguments by position after it."""
    is_function = model.symbols.full_name(call.func).startswith(("torch.", "einops."))
    if not is_function and isinstance(call.func, ast.Attribute):
        return [call.func.value, *call.args]
    first = keyword(call, "input")
    return call.args if first is None else [first, *call.args]


def returned(model: Model, call: ast.Call) -> list[ast.expr]:
    """The expressions that a function of the file returns to a call; empty for other calls."""
    found: list[ast.expr] = []
    for callee in model.value(call.func).members:
        info = model.function_of(callee)
        if info is None:
            return []
        found += results(model, info.node)
    return found


def results(model: Model, function: FunctionNode) -> Iterator[ast.expr]:
    """The expressions that a function returns."""
    if isinstance(function, ast.Lambda):
        yield function.body
        return
    for part in walk(function):
        if isinstance(part, ast.Return) and part.value is not None and model.function(part) is function:
            yield part.value

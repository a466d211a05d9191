"""The expressions that may have made a value: through branches, attributes of the object, parameters and calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from perflint.rules._memory.flows import flow_around, made
from perflint.semantics.memo import once, once_per_node
from perflint.semantics.model import FunctionNode, Model
from perflint.semantics.purpose.given import arguments_of_all
from perflint.semantics.structure import keyword, last_name, path_of, walk


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
    owner = next((outer for outer in model.ancestors(node) if isinstance(outer, ast.ClassDef)), None)
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

    A key that code sets in a dict of the same name is left out, and a dict that code changes may hold others.
    """
    found: dict[str, ast.expr] = {}
    is_all = not any(isinstance(each, ast.Starred) for each in call.args)
    waiting, seen = [each.value for each in call.keywords if each.arg is None], set[ast.expr]()
    while waiting:
        holder = waiting.pop()
        if holder in seen:
            continue
        seen.add(holder)
        changed = _changed(model).get(path_of(holder))
        displays = sources(model, holder)
        is_all = is_all and len(displays) == 1 and changed is None
        items: dict[str, ast.expr] = {}
        for display in displays:
            if isinstance(display, ast.Dict):
                named = [(key, value) for key, value in zip(display.keys, display.values, strict=True) if key]
                waiting += [value for key, value in zip(display.keys, display.values, strict=True) if key is None]
                is_all = is_all and all(isinstance(key, ast.Constant) for key, _ in named)
                items |= {str(key.value): value for key, value in named if isinstance(key, ast.Constant)}
            elif isinstance(display, ast.Call) and model.target(display) == "builtins.dict":
                waiting += [*display.args, *(each.value for each in display.keywords if each.arg is None)]
                items |= {each.arg: each.value for each in display.keywords if each.arg is not None}
            else:
                is_all = False
        found |= {name: value for name, value in items.items() if changed is None or name not in changed}
    return found, is_all


@once
def _changed(model: Model) -> Mapping[str, set[str]]:
    """The names of objects of a file whose items are set or whose methods are called, with the keys that are set."""
    found: dict[str, set[str]] = {}
    for part in model.nodes(ast.Subscript):
        if not isinstance(part.ctx, ast.Load):
            keys = found.setdefault(path_of(part.value), set())
            keys |= {str(part.slice.value)} if isinstance(part.slice, ast.Constant) else set()
    for call in model.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute):
            found.setdefault(path_of(call.func.value), set())
    return found


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

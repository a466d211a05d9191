"""Items that a test has narrowed: the test of `d[k]` holds until `k` is bound or something may write to `d`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.semantics.interpreter.frame import Frame, Names
from perflint.semantics.structure import path_of
from perflint.semantics.values import Value

_DEEPEST = 8
_MOST = 16
"""Items that are known at a time; a call asks of each whether it may be written."""

_READERS = frozenset("get items keys values copy index count".split())
"""Methods that write to no container."""

_READING = frozenset(
    """isinstance len print float int str bool type hasattr getattr enumerate zip sorted reversed list tuple set dict
    any all sum min max iter repr format callable""".split()
)
"""Functions that write to no container."""


def place_of(node: ast.expr, depth: int = 0) -> str:
    """The path of a name, an attribute, or an item by literals and paths: "x", "self.a.b", "d[k]['x']"; else empty."""
    if not isinstance(node, ast.Subscript):
        return path_of(node)
    base = place_of(node.value, depth + 1) if depth < _DEEPEST else ""
    index = repr(node.slice.value) if isinstance(node.slice, ast.Constant) else path_of(node.slice)
    return f"{base}[{index}]" if base and index else ""


def item_of(node: ast.expr) -> ast.expr:
    """`d["k"]` for `d.get("k")`, since a test of one is a test of the other; else the expression itself."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "get":
        return node
    if node.keywords or not node.args or not isinstance(node.args[0], ast.Constant):
        return node
    return ast.copy_location(ast.Subscript(node.func.value, node.args[0], ast.Load()), node)


def bind(frame: Frame, names: Names, node: ast.expr, value: Value) -> None:
    """Bind a name, an attribute or an item to its value after a test."""
    place = place_of(node)
    if not isinstance(node, ast.Subscript):
        frame.bind_path(names, place, value)
        return
    if len(frame.narrowed) >= _MOST:
        frame.narrowed = {known for known in frame.narrowed if known in names}
    if len(frame.narrowed) < _MOST:
        names[place] = value
        frame.narrowed.add(place)
        inner: ast.expr = node
        while isinstance(inner, ast.Subscript):
            for part in (inner.value, inner.slice):
                _root(frame, place_of(part), place)
            inner = inner.value


def _root(frame: Frame, path: str, place: str) -> None:
    """Have an item forgotten when a path is bound, or one of the objects that the path leads through."""
    while path:
        frame.rooted.setdefault(path, set()).add(place)
        path = path.rpartition(".")[0]


def forget(frame: Frame, names: Names, path: str) -> None:
    """Forget the narrowed items of a container to which something is written."""
    for place in [place for place in frame.narrowed if place.startswith(f"{path}[")]:
        names.pop(place, None)
        frame.narrowed.discard(place)


def forget_written(frame: Frame, node: ast.Call) -> None:
    """Forget the narrowed items of the containers that a call may write to."""
    names, func = frame.names, node.func
    if names is None or (isinstance(func, ast.Name) and func.id in _READING):
        return
    given = [*node.args, *[keyword.value for keyword in node.keywords]]
    if isinstance(func, ast.Attribute) and func.attr not in _READERS:
        given.append(func.value)
    paths = [place_of(part.value if isinstance(part, ast.Starred) else part) for part in given]
    for place in [place for place in frame.narrowed if any(path and _holds(path, place) for path in paths)]:
        names.pop(place, None)
        frame.narrowed.discard(place)


def _holds(path: str, place: str) -> bool:
    return place.startswith(path) and place[len(path) : len(path) + 1] in ("[", ".")


def current(frame: Frame, node: ast.expr, names: Names) -> Value | None:
    """The value of a name, an attribute or an item with some names; None for other expressions."""
    place = place_of(node)
    if not place:
        return None
    if place in names:
        return names[place]
    before, frame.names = frame.names, names
    recorder, frame.recorder = frame.recorder, None
    value = frame.evaluate(node)
    frame.names, frame.recorder = before, recorder
    return value


def refine(frame: Frame, node: ast.expr, names: Names, change: Callable[[Value], Value]) -> None:
    """Bind a name, an attribute or an item to its changed value, if a change leaves one."""
    node = item_of(node)
    value = current(frame, node, names)
    if value is not None:
        changed = change(value)
        if changed is not value and changed.members:
            bind(frame, names, node, changed)

"""Elements of values: the results of iterating over a value, and of indexing it."""

from __future__ import annotations

import ast

from perflint.semantics.facts import arrays, named, ranks
from perflint.semantics.facts.by_use import shows_array
from perflint.semantics.interpreter import attributes, operators, protocols, records
from perflint.semantics.interpreter.frame import Frame, parts
from perflint.semantics.interpreter.learned import is_order, selects
from perflint.semantics.interpreter.lineage import is_enumeration
from perflint.semantics.lattice import join, union
from perflint.semantics.structure import path_of
from perflint.semantics.values import (
    NEVER,
    NONE,
    ON_CPU,
    STR,
    UNKNOWN,
    Array,
    Class,
    Const,
    Device,
    Evidence,
    Instance,
    Kind,
    Mapping,
    Name,
    Scalar,
    Sequence,
    Tensor,
    Union,
    Unknown,
    Value,
    scalar_type,
)


def iterate(frame: Frame, value: Value) -> Value:
    """The items of a `for` loop over `value`."""
    if isinstance(value, Union):
        return union(iterate(frame, member) for member in value.members if member != NONE)
    if isinstance(value, Sequence):
        if value.type == "batch":
            return value.element
        return value.element if value.items is None else union(value.items)
    if isinstance(value, Tensor):
        rank = None if value.rank is None else max(value.rank - 1, 0)
        return value.with_(rank=rank, leaf="")
    if isinstance(value, Array):
        return arrays.iterated(value)
    if isinstance(value, Mapping):
        return STR
    if isinstance(value, Const) and isinstance(value.value, str):
        return STR
    if isinstance(value, Instance):
        return protocols.iterated(frame, value)
    if isinstance(value, Class) and is_enumeration(frame, value.name):
        return Instance(value.name)
    return value if value is NEVER or isinstance(value, Unknown) else UNKNOWN


def _held(frame: Frame, element: Value) -> Value:
    """An element of a list or dict that is indexed. If it is empty, and no loop fills it later, other code has."""
    return UNKNOWN if element is NEVER and not frame.loops else element


def index_into(frame: Frame, receiver: Value, subscript: ast.Subscript) -> Value:
    """The value of an index; a tensor is on the CPU if it is an index into a tensor there, as others raise."""
    node = subscript.slice
    value = frame.evaluate(node)
    if isinstance(value, Unknown) and value != ON_CPU and is_order(node):
        mask = Tensor(Device.CALLER, Kind.BOOL, evidence=Evidence.USE)
        if isinstance(receiver, Tensor) and receiver.off_host:
            return _recorded(frame, node, mask.with_(device=receiver.device))
        if frame.function is not None and selects(frame.module, frame.function, node, subscript.value):
            return _recorded(frame, node, mask)
    if not (isinstance(receiver, Tensor) and receiver.device is Device.CPU and receiver.evidence is Evidence.CERTAIN):
        return value
    if not isinstance(node, ast.Tuple):
        return _on_host(frame, node, value)
    if not isinstance(value, Sequence) or value.items is None or len(value.items) != len(node.elts):
        return value
    items = tuple([_on_host(frame, part, item) for part, item in zip(node.elts, value.items, strict=True)])
    return Sequence(value.type, union(items), items)


def as_indexed(frame: Frame, subscript: ast.Subscript, receiver: Value, index: Value) -> Value:
    """An indexed value: something that was moved to a GPU, and takes a tensor or several slices as index, is a tensor.

    So it is from there on: a module and a batch take neither.
    """
    node = subscript.slice
    shows = index.tensor is not None or (isinstance(node, ast.Tuple) and shows_array(node))
    used = operators.as_operand(receiver) if shows and receiver.is_open else receiver
    if used is receiver:
        return receiver
    path = path_of(subscript.value)
    if path and frame.names is not None:
        frame.bind_path(frame.names, path, used)
    return _recorded(frame, subscript.value, used)


def _on_host(frame: Frame, node: ast.expr, index: Value) -> Value:
    path = path_of(node)
    if not path or not isinstance(index, Tensor) or index.device not in (Device.CALLER, Device.UNKNOWN):
        return index
    if index.rank == 0:
        # Its number is read, wherever it is.
        return index
    index = index.with_(device=Device.CPU, place="")
    if frame.names is not None:
        frame.bind_path(frame.names, path, index)
    return _recorded(frame, node, index)


def _recorded(frame: Frame, node: ast.expr, value: Value) -> Value:
    """A value that the use of an expression has made more precise."""
    if frame.recorder is not None:
        frame.recorder.values[node] = value
    return value


_UNWRITTEN = ast.Constant(None)
"""An index that the code does not write."""


def item(frame: Frame, receiver: Value, index: Value, node: ast.expr = _UNWRITTEN) -> Value:
    """The result of indexing a value by a value; `node` is the index as it is written.

    Indexing None raises, and so does indexing a tensor, list or tuple by a text.
    """
    members = [member for member in receiver.members if member != NONE] or receiver.members
    if scalar_type(index) == "str" and any(isinstance(member, Mapping) for member in members):
        members = [member for member in members if not _has_order(member)]
    return union(_item(frame, member, index, node) for member in members)


def _has_order(value: Value) -> bool:
    """True for a tensor, a list and a tuple, which raise if a text is the index. A batch may be a dict."""
    return isinstance(value, Tensor) or (isinstance(value, Sequence) and value.type != "batch")


def _item(frame: Frame, receiver: Value, index: Value, node: ast.expr) -> Value:
    if isinstance(receiver, Tensor):
        return receiver.with_(rank=ranks.indexed(receiver, index, node), leaf="", pinned=False)
    if isinstance(receiver, Sequence):
        return _held(frame, _sequence_item(receiver, index, node))
    if isinstance(receiver, Mapping):
        found = (
            named.entry(receiver, index.value)
            if isinstance(index, Const) and isinstance(index.value, str)
            else (join(receiver.element, union(value for _, value in receiver.items)))
        )
        return _held(frame, found)
    if isinstance(receiver, Array):
        return Array(receiver.kind, ranks.indexed(receiver, index, node))
    if isinstance(receiver, Instance):
        items = records.items(frame, receiver)
        if items is not None:
            return _sequence_item(Sequence("tuple", union(items), items), index, node)
        return attributes.as_seen(frame, protocols.indexed(frame, receiver, index, _bounds(node)))
    if isinstance(receiver, (Const, Scalar)) and scalar_type(receiver) == "str":
        return STR
    if isinstance(receiver, (Name, Unknown)):
        if isinstance(index, Const) and isinstance(index.value, str):
            known = named.by_name(index.value)
            if not isinstance(known, Unknown):
                return known
        return (isinstance(receiver, Unknown) and _picked(index, node)) or receiver
    return UNKNOWN


def _picked(index: Value, node: ast.expr) -> Value | None:
    """An unknown value indexed by a mask of torch: only tensors are indexed by a mask that is not on the CPU."""
    if not isinstance(index, Tensor) or index.kind is not Kind.BOOL or index.rank == 0 or not index.off_host:
        return None
    picked = Tensor(index.device, evidence=Evidence.USE, place=index.place)
    return picked.with_(rank=ranks.indexed(picked, index, node))


def _sequence_item(receiver: Sequence, index: Value, node: ast.expr) -> Value:
    if receiver.type == "batch":
        return receiver.element
    if isinstance(node, ast.Slice):
        kind = "tuple" if receiver.type == "size" else receiver.type
        return Sequence(kind, receiver.element, _sliced(receiver, node))
    if receiver.items is not None and isinstance(index, Const) and isinstance(index.value, int):
        if -len(receiver.items) <= index.value < len(receiver.items):
            return receiver.items[index.value]
    return receiver.element


def _sliced(receiver: Sequence, node: ast.Slice) -> tuple[Value, ...] | None:
    bounds = _bounds(node)
    return None if receiver.items is None or bounds is None else receiver.items[bounds]


def _bounds(node: ast.expr) -> slice | None:
    """A slice whose bounds are literals."""
    if not isinstance(node, ast.Slice):
        return None
    bounds: list[int | None] = []
    for part in (node.lower, node.upper, node.step):
        sign = 1
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub):
            part, sign = part.operand, -1
        if part is None:
            bounds.append(None)
        elif isinstance(part, ast.Constant) and isinstance(part.value, int):
            bounds.append(sign * part.value)
        else:
            return None
    return None if bounds[2] == 0 else slice(*bounds)


parts.item = item
parts.iterate = iterate

"""Assignments: the values that targets are bound to, and the new values of their containers."""

from __future__ import annotations

import ast

from perflint.semantics.facts import containers, named
from perflint.semantics.facts.tensors import as_loss
from perflint.semantics.interpreter import autograd, members, narrowed, records, self_attributes, stores
from perflint.semantics.interpreter.annotations import local_by_use
from perflint.semantics.interpreter.elements import index_into
from perflint.semantics.interpreter.frame import Frame, parts
from perflint.semantics.interpreter.lineage import is_property
from perflint.semantics.lattice import join, union, with_key
from perflint.semantics.structure import path_of
from perflint.semantics.values import (
    UNKNOWN,
    Const,
    Device,
    DeviceValue,
    Instance,
    Mapping,
    Sequence,
    Tensor,
    Unknown,
    Value,
)


def assign(frame: Frame, target: ast.expr, value: Value) -> None:
    """Bind an assignment's target."""
    names = frame.names
    if names is None:
        return
    if isinstance(target, ast.Name):
        frame.forget_paths(names, target.id)
        # Bound again after `loss.backward()`, a name may be a number.
        if target.lineno <= frame.module.structure.losses.get((frame.function, target.id), 0):
            value = as_loss(value)
        elif value.is_unknown:
            value = union(_told(frame, target.id, m) if isinstance(m, Unknown) else m for m in value.members)
        value = named.placed(target.id, value)
        if isinstance(value, DeviceValue) and not value.place and value.device in (Device.UNKNOWN, Device.CALLER):
            value = DeviceValue(value.device, f"{target.id}:{target.lineno}")
        frame.bind_path(names, target.id, value)
        if frame.recorder is not None:
            frame.recorder.values[target] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(frame, target.elts, value)
    elif isinstance(target, ast.Starred):
        assign(frame, target.value, value)
    elif isinstance(target, ast.Attribute):
        _assign_attribute(frame, target, value)
    elif isinstance(target, ast.Subscript):
        _assign_item(frame, target, value)


def _told(frame: Frame, name: str, value: Unknown) -> Value:
    """An unknown value by the name that it is bound to, or by the methods that the function calls of that name."""
    by_name = named.by_name(name, value)
    return local_by_use(frame.function, name) if by_name == UNKNOWN and frame.function is not None else by_name


def _unpack(frame: Frame, targets: list[ast.expr], value: Value) -> None:
    parts = [_parts(frame, member, targets) for member in value.members] or [[UNKNOWN] * len(targets)]
    for index, target in enumerate(targets):
        assign(frame, target, union(part[index] for part in parts))


def _parts(frame: Frame, value: Value, targets: list[ast.expr]) -> list[Value]:
    starred = next((index for index, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
    known = value.items if isinstance(value, Sequence) else None
    if isinstance(value, Instance):
        known = records.items(frame, value)
    if known is not None:
        items = list(known)
        if starred is None and len(items) == len(targets):
            return items
        if starred is not None and len(items) >= len(targets) - 1:
            after = len(targets) - 1 - starred
            middle = tuple(items[starred : len(items) - after])
            rest = items[len(items) - after :] if after else []
            return [*items[:starred], Sequence("list", union(middle), middle), *rest]
    element = frame.iterate(value)
    return [Sequence("list", element) if index == starred else element for index in range(len(targets))]


def _assign_attribute(frame: Frame, target: ast.Attribute, value: Value) -> None:
    receiver = frame.evaluate(target.value)
    if frame.recorder is not None:
        frame.recorder.values[target] = value
    path = path_of(target)
    if path and frame.names is not None:
        frame.forget_paths(frame.names, path)
        if isinstance(receiver, Instance) and is_property(frame, receiver.cls, target.attr):
            # Its setter may store any other value.
            return
        frame.bind_path(frame.names, path, value)
    if isinstance(receiver, Instance) and receiver.cls == autograd.CONTEXT:
        autograd.note(frame, receiver, target.attr, value)
    if isinstance(receiver, Instance) and not self_attributes.is_passing(frame, target):
        if receiver == frame.receiver and frame.owner:
            self_attributes.note_attribute(frame, frame.owner, target.attr, value)
        elif not members.binds(frame, receiver, target.attr):
            self_attributes.note_attribute(frame, receiver.cls, target.attr, value, is_own=False)


def _assign_item(frame: Frame, target: ast.Subscript, value: Value) -> None:
    receiver = frame.evaluate(target.value)
    index = index_into(frame, receiver, target)
    if frame.recorder is not None:
        frame.recorder.values[target] = value
    if frame.narrowed and frame.names is not None:
        narrowed.forget(frame, frame.names, narrowed.place_of(target.value))
    anew = stores.stored_in_turn(frame, target, receiver, value)
    if anew is not None and frame.names is not None:
        # The other items are what they were until the loop ends.
        frame.filled[path_of(target.value)] = anew
        narrowed.bind(frame, frame.names, target, value)
        return
    changed = _with_item(receiver, index, value)
    if changed is not None:
        rebind(frame, target.value, changed)


def _with_item(receiver: Value, index: Value, value: Value) -> Value | None:
    """A container after an item was set in it; None for anything else."""
    if isinstance(receiver, Mapping):
        if isinstance(index, Const) and isinstance(index.value, str):
            return with_key(receiver, index.value, value)
        return Mapping(join(receiver.element, value), receiver.items)
    if isinstance(receiver, Sequence) and receiver.type == "list":
        return Sequence("list", join(receiver.element, value))
    if isinstance(receiver, Sequence) and receiver.type == "batch":
        return stores.batch_with(receiver, index, value)
    if isinstance(receiver, Tensor):
        return receiver.with_(device=Device.UNKNOWN) if stores.is_list(receiver, value) else None
    return containers.with_item(receiver, index, value) if isinstance(receiver, Instance) else None


def rebind(frame: Frame, node: ast.expr, value: Value) -> None:
    """Bind a name, an attribute or an item of one to the changed value of its object."""
    if isinstance(node, ast.Subscript):
        if _is_place(node.value):
            known = isinstance(node.slice, ast.Constant) or path_of(node.slice)
            index = frame.evaluate(node.slice) if known else UNKNOWN
            changed = _with_item(frame.evaluate(node.value), index, value)
            if changed is not None:
                rebind(frame, node.value, changed)
        return
    path = path_of(node)
    if not path or frame.names is None:
        return
    before = frame.names.get(path)
    frame.bind_path(frame.names, path, value)
    # What is written to a tensor may give it another shape, but never another device.
    is_reshaped = isinstance(before, Tensor) and isinstance(value, Tensor) and before.rank != value.rank
    if before is not None and (is_reshaped or isinstance(before, (Sequence, Mapping))):
        for other in [other for other, held in frame.names.items() if held is before]:
            # It may be another name of the same object.
            frame.bind_path(frame.names, other, join(before, value))
    if path.startswith("self.") and path.count(".") == 1 and frame.owner:
        self_attributes.note_attribute(frame, frame.owner, path[5:], value)


_DEEPEST_PLACE = 8
"""Items of items that are bound anew when something is put into them."""


def _is_place(node: ast.expr) -> bool:
    """True if an expression is an item of an item of a name, with no calls that would run once more."""
    depth = 0
    while isinstance(node, ast.Subscript) and depth < _DEEPEST_PLACE:
        if not (isinstance(node.slice, ast.Constant) or path_of(node.slice)):
            return False
        node, depth = node.value, depth + 1
    return bool(path_of(node))


parts.rebind = rebind

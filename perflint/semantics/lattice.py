"""Joins of values: what covers several of them, and what keeps them small.

`join` is the least upper bound, `UNKNOWN` the top, `NEVER` the bottom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from perflint.semantics.values import (
    BOOL,
    FLOAT,
    INT,
    NEVER,
    UNKNOWN,
    Array,
    Const,
    Device,
    DeviceValue,
    Dtype,
    Evidence,
    Function,
    Instance,
    Kind,
    Mapping,
    Name,
    Never,
    Partial,
    Scalar,
    Sequence,
    Tensor,
    Union,
    Unknown,
    Value,
    scalar_type,
)

_MOST_ALTERNATIVES = 6


def join(left: Value, right: Value) -> Value:
    """The least value that covers both. Tensors join field by field."""
    if left is right or right is NEVER:
        return left
    if left is NEVER:
        return right
    kind, other = type(left), type(right)
    if kind is Unknown or other is Unknown:
        return _with_unknown(left, right)
    if kind is Union or other is Union:
        return left if left == right else union((*left.members, *right.members))
    merged = _merge(left, right)
    return Union((left, right)) if merged is None else merged


def _with_unknown(left: Value, right: Value) -> Value:
    # An unknown alternative takes certainty from a tensor, not its being one.
    if isinstance(left, Unknown) and isinstance(right, Unknown):
        return left if left == right else UNKNOWN
    known = right if isinstance(left, Unknown) else left
    tensor = known.tensor
    if tensor is None:
        return UNKNOWN
    return union((tensor, UNKNOWN))


def union(values: Iterable[Value]) -> Value:
    """The join of several values."""
    alternatives: list[Value] = []
    for value in values:
        if isinstance(value, (Union, Never)):
            for member in value.members:
                _absorb(alternatives, member)
        elif not alternatives:
            alternatives.append(value)
        elif value is not alternatives[-1]:
            _absorb(alternatives, value)
    if len(alternatives) == 1:
        return alternatives[0]
    if not alternatives:
        return NEVER
    if len(alternatives) > _MOST_ALTERNATIVES:
        tensor = next((v for v in alternatives if isinstance(v, Tensor)), None)
        return UNKNOWN if tensor is None else Union((tensor, UNKNOWN))
    return Union(tuple(alternatives))


def _absorb(alternatives: list[Value], value: Value) -> None:
    for index, other in enumerate(alternatives):
        merged = _merge(other, value)
        if merged is not None:
            alternatives[index] = merged
            return
    alternatives.append(value)


def _merge(left: Value, right: Value) -> Value | None:
    """One value for both, or None when they are different alternatives."""
    kind = type(left)
    if kind is not type(right):
        return _merge_scalars(left, right) if kind in _SCALARS and type(right) in _SCALARS else None
    if left is right or left == right:
        return left
    merge = _MERGES.get(kind)
    return None if merge is None else merge(left, right)


_SCALARS = (Const, Scalar)


def _merge_scalars(left: Value, right: Value) -> Value | None:
    kind = scalar_type(left)
    if kind != scalar_type(right) or kind == "None":
        return None
    if kind != "str":
        return _ANY.get(kind) or Scalar(kind)
    return _chosen_device(left, right) or Scalar(kind, _named_device(left, right))


_ANY = {scalar.type: scalar for scalar in (INT, FLOAT, BOOL)}


def _merge_instances(left: Instance, right: Instance) -> Instance | None:
    """An object of their class, with the arguments that both were given the names of."""
    if left.cls != right.cls:
        return None
    origin = left.origin if left.origin == right.origin else None
    if left.arguments is None or right.arguments is None:
        return Instance(left.cls, None, origin)
    if left.cls in ("torch.nn.ModuleList", "torch.nn.ModuleDict") and not (left.arguments and right.arguments):
        # An empty one, and one that has been filled.
        return Instance(left.cls, left.arguments or right.arguments, origin)
    theirs = dict(right.arguments)
    if [name for name, _ in left.arguments] != list(theirs):
        return Instance(left.cls, None, origin)
    return Instance(left.cls, tuple((name, join(value, theirs[name])) for name, value in left.arguments), origin)


def _chosen_device(left: Value, right: Value) -> Const | None:
    """The device of `"cuda" if … else "cpu"`, or the type named by a text; None for any other two scalars."""
    if not (isinstance(left, Const) and isinstance(right, Const)):
        return None
    for one, other in ((left, right), (right, left)):
        if not (isinstance(one.value, str) and isinstance(other.value, str)):
            return None
        if (one.value == "cpu" and other.value.startswith("cuda")) or _on_device(one.value) == other.value:
            return other
    return None


def _merge_names(left: Name, right: Name) -> Name | None:
    """The type of `torch.cuda.FloatTensor if … else torch.FloatTensor`."""
    for one, other in ((left, right), (right, left)):
        if _on_device(one.name) == other.name and one.receiver is other.receiver is None:
            return other
    return None


def _on_device(name: str) -> str:
    """The device's type of tensors for one of the host's, "torch.cuda.FloatTensor"; empty for any other name."""
    head, _, leaf = name.rpartition(".")
    return f"torch.cuda.{leaf}" if head == "torch" and leaf.endswith("Tensor") else ""


def _named_device(*values: Value) -> Const | None:
    """The device that one of several texts names: the GPU, if one does, for that is what is linted for."""
    texts = [value.default if isinstance(value, Scalar) else value for value in values]
    for device in ("cuda", "cpu"):
        for text in texts:
            if isinstance(text, Const) and isinstance(text.value, str) and text.value.startswith(device):
                return text
    return None


def _merge_sequences(left: Sequence, right: Sequence) -> Sequence | None:
    if left.type != right.type:
        return None
    element = join(left.element, right.element)
    if left.items is not None and right.items is not None and len(left.items) == len(right.items):
        return Sequence(left.type, element, tuple(map(join, left.items, right.items)))
    return Sequence(left.type, element)


def _merge_mappings(left: Mapping, right: Mapping) -> Mapping:
    ours, theirs = dict(left.items), dict(right.items)
    keys = list(ours | theirs)
    # A key that only one of them is known to have is any of the elements of the other.
    held = [(key, join(ours.get(key, left.element), theirs.get(key, right.element))) for key in keys]
    dropped = [value for _, value in held[MOST_KEYS:]]
    return Mapping(union([left.element, right.element, *dropped]), tuple(held[:MOST_KEYS]))


def _merge_devices(left: DeviceValue, right: DeviceValue) -> DeviceValue:
    if {left.device, right.device} in ({Device.CPU, Device.CUDA}, {Device.META, Device.CUDA}):
        # `cuda if available else cpu`: what is linted is linted for a GPU.
        return DeviceValue(Device.CUDA)
    same = left.place if left.place == right.place else ""
    return DeviceValue(join_devices(left.device, right.device), same)


def with_key(held: Mapping, key: str, value: Value) -> Mapping:
    """A dict after `held[key] = value`."""
    others = [item for item in held.items if item[0] != key]
    element = held.element
    if len(others) >= MOST_KEYS:
        # The value of a key that is dropped is among the elements still.
        element = join(element, others.pop(0)[1])
    return Mapping(element, (*others, (key, value)))


MOST_KEYS = 64
"""The number of keys of a dict, and of elements of a literal, that are kept apart."""

_DEEPEST_VALUE = 3
_MOST_ITEMS = 16


_CONTAINERS = frozenset({"torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.Sequential"})


def widen(value: Value, depth: int = _DEEPEST_VALUE) -> Value:
    """A value without what lies too deep in it, so that values that are built on values stay small."""
    if value.weight < (2 << depth) - 1:
        # Whatever lies too deep weighs more.
        return value
    if isinstance(value, Instance):
        if value.arguments is None:
            return value
        if depth == 0:
            return Instance(value.cls, None, value.origin)
        # A container is no more than the modules in it.
        inner_depth = depth if value.cls in _CONTAINERS else depth - 1
        kept = _widen_named(value.arguments[:_MOST_ITEMS], inner_depth)
        return value if kept == value.arguments else Instance(value.cls, kept, value.origin)
    if isinstance(value, Sequence):
        if depth == 0:
            return Sequence(value.type, value.element if isinstance(value.element, (Tensor, Scalar)) else UNKNOWN)
        items = value.items
        if items is not None:
            items = None if len(items) > _MOST_ITEMS else tuple([widen(item, depth - 1) for item in items])
        return Sequence(value.type, widen(value.element, depth - 1), items)
    if isinstance(value, Mapping):
        if depth == 0:
            every = union([value.element, *(inner for _, inner in value.items)])
            return Mapping(every if isinstance(every, (Tensor, Scalar)) else UNKNOWN)
        dropped = [widen(inner, depth - 1) for _, inner in value.items[_MOST_ITEMS:]]
        element = union([widen(value.element, depth - 1), *dropped])
        if dropped and not all(isinstance(inner, Tensor) for _, inner in value.items):
            element = _with_likely_tensors(element)
        return Mapping(element, _widen_named(value.items[:_MOST_ITEMS], depth - 1))
    if isinstance(value, Union):
        return union(widen(member, depth) for member in value.alternatives)
    if isinstance(value, Function) and value.receiver is not None and depth == 0:
        return Function(
            value.module, value.qualname, value.line, value.column, value.owner, None, value.captured, value.plain
        )
    if isinstance(value, Partial):
        return value if depth else UNKNOWN
    return value


def _with_likely_tensors(value: Value) -> Value:
    """The elements of a dict whose keys are dropped: a tensor among other values is only likely at any of the keys."""
    members = value.members
    return union([each.with_(evidence=Evidence.USE) if isinstance(each, Tensor) else each for each in members])


def _widen_named(named: tuple[tuple[str, Value], ...], depth: int) -> tuple[tuple[str, Value], ...]:
    return tuple([(name, widen(inner, depth)) for name, inner in named])


def join_tensors(left: Tensor, right: Tensor) -> Tensor:
    """The tensor that covers both."""
    return Tensor(
        device=join_devices(left.device, right.device),
        kind=left.kind if left.kind is right.kind else Kind.UNKNOWN,
        rank=left.rank if left.rank == right.rank else None,
        evidence=min(left.evidence, right.evidence),
        pinned=left.pinned and right.pinned,
        leaf=left.leaf if left.leaf == right.leaf else "",
        place=left.place if left.place == right.place else "",
    )


def join_devices(left: Device, right: Device) -> Device:
    """Where a value is that is at one place or the other."""
    if left is right:
        return left
    both = {left, right}
    if both == {Device.CUDA, Device.MODEL}:
        # A module's device is the GPU in what is linted.
        return Device.MODEL
    # What one caller is known to have put on the device is no less likely to be there for the others.
    return Device.CALLER if both in ({Device.CUDA, Device.CALLER}, {Device.MODEL, Device.CALLER}) else Device.UNKNOWN


def without(value: Value, *unwanted: Value) -> Value:
    """The alternatives other than `unwanted`."""
    if not isinstance(value, Union) and value not in unwanted:
        return value
    return union(member for member in value.members if member not in unwanted)


_MERGES: dict[type[Value], Callable[[Any, Any], Value | None]] = {
    Tensor: join_tensors,
    Const: _merge_scalars,
    Scalar: _merge_scalars,
    Sequence: _merge_sequences,
    Mapping: _merge_mappings,
    DeviceValue: _merge_devices,
    Dtype: lambda left, right: Dtype("", left.kind if left.kind is right.kind else Kind.UNKNOWN),
    Array: lambda left, right: Array(
        left.kind if left.kind is right.kind else Kind.UNKNOWN, left.rank if left.rank == right.rank else None
    ),
    Instance: _merge_instances,
    Name: _merge_names,
}

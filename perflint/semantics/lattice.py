"""Joins of values, and the limits that keep values small.

`join` and `union` give the least value that covers several values. `NEVER` is the bottom, `ANYTHING` beside a tensor
the top. A result does not depend on the order of the values:

- idempotent: `join(a, a) == a`
- commutative: `join(a, b) == join(b, a)`
- associative: `join(join(a, b), c) == join(a, join(b, c)) == union([a, b, c])`

Two values either merge into one (tensors, numbers of one type, objects of one class, …) or stay apart. Merging is an
equivalence, so a union has one member of each class of values, and its members are sorted: a tensor is the first,
something unknown the last. Something unknown is a member like any other. A union of more than `MOST_MEMBERS` becomes
`ANYTHING`, which replaces all members but a tensor, those that are joined later too.

`widen`, `with_key` and the limit of weight (`HEAVIEST`) are not joins: they drop parts of one value, so that values
stay small. Their results depend on how a value was built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from perflint.frozen import replace
from perflint.semantics.values import (
    ANYTHING,
    BOOL,
    FLOAT,
    INT,
    NEVER,
    NONE,
    STR,
    UNKNOWN,
    Array,
    Class,
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
    Partial,
    Scalar,
    Sequence,
    Super,
    Tensor,
    TypeForm,
    Union,
    Unknown,
    Value,
    scalar_type,
)

MOST_MEMBERS = 8
"""The number of members of a union; more of them are `ANYTHING`, except a tensor."""


def join(left: Value, right: Value) -> Value:
    """The least value that covers both. Tensors join field by field."""
    if left is right or right is NEVER:
        return left
    if left is NEVER:
        return right
    if type(left) is Union or type(right) is Union:
        return left if left == right else union((*left.members, *right.members))
    merged = _merge(left, right)
    return _sorted([left, right]) if merged is None else merged


def union(values: Iterable[Value]) -> Value:
    """The join of several values."""
    members: list[Value] = []
    for value in values:
        if type(value) is Union:
            for member in value.alternatives:
                _absorb(members, member)
        elif not members:
            if value is not NEVER:
                members.append(value)
        elif value is not NEVER and value is not members[-1]:
            _absorb(members, value)
    if len(members) == 1:
        return members[0]
    return _sorted(members) if members else NEVER


def _absorb(members: list[Value], value: Value) -> None:
    for index, other in enumerate(members):
        if other is value:
            return
        merged = _merge(other, value)
        if merged is not None:
            members[index] = merged
            return
    members.append(value)


def _sorted(members: list[Value]) -> Value:
    """The union of members that do not merge."""
    kinds = {type(member) for member in members}
    members.sort(key=_rank if len(kinds) == len(members) else _place_in_union)
    last = members[-1]
    if len(members) > MOST_MEMBERS or (type(last) is Unknown and last.absorbs):
        first = members[0]
        return Union((first, ANYTHING)) if type(first) is Tensor else ANYTHING
    return Union(tuple(members))


def _rank(value: Value) -> int:
    return _RANKS[type(value)]


def _place_in_union(value: Value) -> tuple[int, str, _Held]:
    kind = type(value)
    name = _DISTINGUISHED.get(kind)
    return _RANKS[kind], "" if name is None else name(value), _Held(value)


class _Held:
    """Sorts values of one kind and name by the text of what they hold, which is long, and made only if they meet."""

    __slots__ = ("_value",)

    def __init__(self, value: Value) -> None:
        self._value = value

    def __lt__(self, other: _Held) -> bool:
        return type(self._value) in _HOLDING and repr(self._value) < repr(other._value)


def _merge(left: Value, right: Value) -> Value | None:
    """One value for both, or None if they stay apart."""
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
    if not (_may_name_device(left) or _may_name_device(right)):
        return STR
    return _chosen_device(left, right) or Scalar(kind, _named_device(left, right))


def _may_name_device(value: Value) -> bool:
    """False for a text that is neither a device nor a type of tensors, as most texts."""
    text = value.default if type(value) is Scalar else value
    return type(text) is Const and isinstance(text.value, str) and text.value.startswith(_OF_DEVICES)


_OF_DEVICES = ("cuda", "cpu", "torch.")


_ANY = {scalar.type: scalar for scalar in (INT, FLOAT, BOOL)}


def _merge_instances(left: Instance, right: Instance) -> Instance | None:
    """An object of their class, with its arguments if both have the same names of arguments."""
    if left.cls != right.cls:
        return None
    origin = left.origin if left.origin == right.origin else None
    # A module that is bound again under its name may run as graphs, or take its inputs along, wherever it is read.
    graphs = max(left.graphs, right.graphs)
    joined = Instance(left.cls, None, origin, graphs, left.takes_inputs_along or right.takes_inputs_along)
    if left.arguments is None or right.arguments is None:
        return joined
    if left.cls in ("torch.nn.ModuleList", "torch.nn.ModuleDict") and not (left.arguments and right.arguments):
        # An empty one, and one that has been filled.
        return replace(joined, arguments=left.arguments or right.arguments)
    theirs = dict(right.arguments)
    if [name for name, _ in left.arguments] != list(theirs):
        return joined
    return replace(joined, arguments=tuple((name, join(value, theirs[name])) for name, value in left.arguments))


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


def _on_device(name: str) -> str | None:
    """The device's type of tensors for one of the CPU's, "torch.cuda.FloatTensor"; None for any other name."""
    head, _, leaf = name.rpartition(".")
    return f"torch.cuda.{leaf}" if head == "torch" and leaf.endswith("Tensor") else None


def _named_device(*values: Value) -> Const | None:
    """The device that one of several texts names: the GPU if one does, because code is linted for a GPU.

    Of two devices of one type (`cuda:0` and `cuda:1`) only the type is known.
    """
    texts = [value.default if isinstance(value, Scalar) else value for value in values]
    names = {text.value for text in texts if isinstance(text, Const) and isinstance(text.value, str)}
    for device in ("cuda", "cpu"):
        named = [name for name in names if name.startswith(device)]
        if named:
            return Const(named[0] if len(named) == 1 else device)
    return None


def _merge_unknown(left: Unknown, right: Unknown) -> Unknown:
    """Something unknown that is likely to be off the CPU if both are."""
    if left.absorbs or right.absorbs:
        return ANYTHING
    if left.near is not right.near:
        return UNKNOWN
    return right if left.moved else left


def _merge_sequences(left: Sequence, right: Sequence) -> Sequence | None:
    if left.type != right.type:
        return None
    element = join(left.element, right.element)
    if left.items is not None and right.items is not None and len(left.items) == len(right.items):
        return Sequence(left.type, element, tuple(map(join, left.items, right.items)))
    return Sequence(left.type, element)


def _merge_mappings(left: Mapping, right: Mapping) -> Mapping:
    element = join(left.element, right.element)
    if [key for key, _ in left.items] == [key for key, _ in right.items]:
        pairs = zip(left.items, right.items, strict=True)
        return Mapping(element, tuple([(key, join(ours, theirs)) for (key, ours), (_, theirs) in pairs]))
    ours, theirs = dict(left.items), dict(right.items)
    # Dicts that were filled in different orders have no order.
    keys = sorted(ours | theirs)
    # A key that is missing in one of them may be any of its elements.
    held = tuple([(key, join(ours.get(key, left.element), theirs.get(key, right.element))) for key in keys])
    return Mapping(element, held)


def _merge_devices(left: DeviceValue, right: DeviceValue) -> DeviceValue:
    """`cuda if available else cpu` is the GPU, because code is linted for a GPU."""
    same = left.place if left.place == right.place else ""
    order = next((order for order in _CHOSEN if {left.device, right.device}.issubset(order)), None)
    device = Device.UNKNOWN if order is None else max(left.device, right.device, key=order.index)
    return DeviceValue(device, same)


_CHOSEN = ((Device.META, Device.CPU, Device.CUDA, Device.UNKNOWN), (Device.MODEL, Device.CALLER, Device.UNKNOWN))
"""The later device of an order is chosen. Devices of two orders are unknown together."""


def with_key(held: Mapping, key: str, value: Value) -> Mapping:
    """A dict after `held[key] = value`."""
    others = [item for item in held.items if item[0] != key]
    start = max(len(others) + 1 - MOST_KEYS, 0)
    # The values of keys that are dropped are elements still.
    return Mapping(union([held.element, *(item for _, item in others[:start])]), (*others[start:], (key, value)))


MOST_KEYS = 64
"""The number of keys of a dict, and of elements of a literal, that are kept apart."""

_DEEPEST_VALUE = 3
_MOST_ITEMS = 16


_CONTAINERS = frozenset({"torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.Sequential"})


def widen(value: Value, depth: int = _DEEPEST_VALUE) -> Value:
    """A value without its parts that are nested too deep, so that values that are built on values stay small."""
    if value.weight < (2 << depth) - 1:
        # A value with parts that are too deep weighs more.
        return value
    if isinstance(value, Instance):
        if value.arguments is None:
            return value
        if depth == 0:
            return replace(value, arguments=None)
        # A container does not count as a level: it only holds modules.
        inner_depth = depth if value.cls in _CONTAINERS else depth - 1
        kept = _widen_named(value.arguments[:_MOST_ITEMS], inner_depth)
        return value if kept == value.arguments else replace(value, arguments=kept)
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
        return replace(value, receiver=None)
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
    """The place of a value that is at one place or the other."""
    if left is right:
        return left
    both = {left, right}
    if both == {Device.CUDA, Device.MODEL}:
        # The device of a module is assumed to be the GPU.
        return Device.MODEL
    # If one caller passes a tensor on the GPU, the others probably do so, too.
    return Device.CALLER if both in ({Device.CUDA, Device.CALLER}, {Device.MODEL, Device.CALLER}) else Device.UNKNOWN


def completed(value: Value, declared: Value) -> Value:
    """A value with a declared type in place of its unknown alternative. It is None only if the type says so."""
    if isinstance(declared, Unknown) and not isinstance(value, Unknown):
        return value
    return union(declared if isinstance(member, Unknown) else member for member in value.members if member != NONE)


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
        left.kind if left.kind is right.kind else Kind.UNKNOWN,
        left.rank if left.rank == right.rank else None,
        left.is_image and right.is_image,
    ),
    Instance: _merge_instances,
    Name: _merge_names,
    Unknown: _merge_unknown,
}

_RANKS: dict[type[Value], int] = {
    kind: rank
    for rank, kind in enumerate(
        (
            Tensor,
            DeviceValue,
            Dtype,
            Array,
            Sequence,
            Mapping,
            Instance,
            Class,
            Function,
            Partial,
            Name,
            TypeForm,
            Super,
            Scalar,
            Const,
            Unknown,
        )
    )
}
_DISTINGUISHED: dict[type[Value], Callable[[Any], str]] = {
    Sequence: lambda value: value.type,
    Instance: lambda value: value.cls,
    Class: lambda value: value.name,
    Function: lambda value: f"{value.module}.{value.qualname}",
    Name: lambda value: value.name,
    Scalar: scalar_type,
    Const: scalar_type,
}
_HOLDING = frozenset({Function, Partial, Name, TypeForm, Super})
"""Values of the same name that stay apart if they hold different values."""

"""What an expression may evaluate to: the lattice of the abstract interpreter.

Values are immutable and hashable. `join` is the least upper bound, `UNKNOWN` the top.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum


class Device(Enum):
    """Where a tensor lives."""

    CPU = "cpu"
    CUDA = "cuda"
    MODEL = "model"
    """With the parameters of the module whose method this is: the device, in a hot path."""
    CALLER = "caller"
    """Wherever the caller of this function put its arguments."""
    UNKNOWN = "unknown"
    META = "meta"


class Kind(Enum):
    """The dtype of a tensor or array, as far as performance cares."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    UNKNOWN = "unknown"


class Evidence(IntEnum):
    """Why a value is held to be a tensor; operations hand on the weakest of their operands'."""

    USE = 1
    """It is used as tensors are (`x.shape`, an argument of a torch function)."""
    CONVENTION = 2
    """A docstring's type, an argument of `forward`."""
    ANNOTATION = 3
    """An annotation, a narrowing by `isinstance`."""
    CERTAIN = 4
    """The result of a torch call, a parameter, a buffer."""


class Value:
    """Base of all values."""

    __slots__ = ()

    @property
    def members(self) -> tuple[Value, ...]:
        """The alternatives of a union, or the value itself."""
        return (self,)

    @property
    def tensor(self) -> Tensor | None:
        """The tensor that this is or may be."""
        return None


@dataclass(frozen=True, slots=True)
class Unknown(Value):
    """Cannot tell."""


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Never(Value):
    """No value at all: the element of an empty list, the result of a function that raises."""

    @property
    def members(self) -> tuple[Value, ...]:
        return ()


NEVER = Never()


@dataclass(frozen=True, slots=True)
class Tensor(Value):
    """A torch.Tensor. `rank` is the number of dimensions, None when unknown.

    `leaf` names what it is when that matters: "parameter", "buffer" or "". `place` tells one
    unknown device from another: where it was named.
    """

    device: Device = Device.UNKNOWN
    kind: Kind = Kind.UNKNOWN
    rank: int | None = None
    evidence: Evidence = Evidence.CERTAIN
    pinned: bool = False
    leaf: str = ""
    place: str = ""

    @property
    def tensor(self) -> Tensor | None:
        return self

    @property
    def off_host(self) -> bool:
        """Whether it may live on the device (it is not known to live on the host)."""
        return self.device not in (Device.CPU, Device.META)

    def with_(self, **changes: object) -> Tensor:
        """A copy with some fields changed."""
        get = changes.get
        return Tensor(
            get("device", self.device),  # type: ignore[arg-type]
            get("kind", self.kind),  # type: ignore[arg-type]
            get("rank", self.rank),  # type: ignore[arg-type]
            get("evidence", self.evidence),  # type: ignore[arg-type]
            get("pinned", self.pinned),  # type: ignore[arg-type]
            get("leaf", self.leaf),  # type: ignore[arg-type]
            get("place", self.place),  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True)
class Const(Value):
    """A Python literal: None, Ellipsis, a bool, int, float, str or bytes."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


NONE = Const(None)


@dataclass(frozen=True, slots=True)
class Scalar(Value):
    """A Python `int`, `float`, `bool`, `str`, `bytes` or `complex` that is not known.

    `default` is the value that it has when nobody says otherwise: a parameter's or a
    dataclass field's default.
    """

    type: str
    default: Const | None = None


INT, FLOAT, BOOL, STR = Scalar("int"), Scalar("float"), Scalar("bool"), Scalar("str")


@dataclass(frozen=True, slots=True)
class DeviceValue(Value):
    """A torch.device. `place` tells one unknown device from another, as in `Tensor`."""

    device: Device = Device.UNKNOWN
    place: str = ""


@dataclass(frozen=True, slots=True)
class Dtype(Value):
    """A torch.dtype; `name` as in `torch.<name>`, empty when unknown.

    `held` is what a tensor of it holds, as far as that is known without the name: `x.dtype`.
    """

    name: str = ""
    held: Kind = Kind.UNKNOWN

    @property
    def kind(self) -> Kind:
        """The kind of a tensor of this dtype."""
        if self.name == "bool":
            return Kind.BOOL
        if self.name.startswith(("float", "bfloat", "half", "double")):
            return Kind.FLOAT
        if self.name.startswith(("int", "uint", "long", "short")):
            return Kind.INT
        return self.held


@dataclass(frozen=True, slots=True)
class Sequence(Value):
    """A list, tuple, set, torch.Size, generator or other iterable of `element`.

    `items` holds the elements one by one where they are known; `type` is "list", "tuple",
    "set", "size", "iterator", "range", … A "batch" is what a loader yields or an unknown model
    returns: a tensor, or a tuple, dict or object of tensors; it passes for any of them.
    """

    type: str
    element: Value = UNKNOWN
    items: tuple[Value, ...] | None = None

    @property
    def tensor(self) -> Tensor | None:
        return self.element.tensor if self.type == "batch" else None


@dataclass(frozen=True, slots=True)
class Mapping(Value):
    """A dict; `items` holds the values of the keys that are known."""

    element: Value = UNKNOWN
    items: tuple[tuple[str, Value], ...] = ()

    def get(self, key: str) -> Value:
        """The value of a string key."""
        for name, value in self.items:
            if name == key:
                return value
        return self.element


@dataclass(frozen=True, slots=True)
class Array(Value):
    """A numpy.ndarray (or pandas column, PIL image: host data that numpy handles)."""

    kind: Kind = Kind.UNKNOWN


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an object was constructed: a module's dotted name and a position in it."""

    module: str
    line: int
    column: int
    """Line from 1 and UTF-8 offset from 0, as in `ast`."""


@dataclass(frozen=True, slots=True)
class Instance(Value):
    """An object of a class that is no tensor.

    `cls` is the class's full name: "torch.nn.Conv2d", "torch.utils.data.DataLoader",
    "torch.optim.Adam", or "package.module.Class" of the project. `arguments` are those of
    the constructor call by parameter name where its signature is known, by position
    ("0", "1", …) where not; None when the call was not seen.
    """

    cls: str
    arguments: tuple[tuple[str, Value], ...] | None = None
    origin: Origin | None = None

    def argument(self, name: str) -> Value | None:
        """The constructor's argument, None where it was not given."""
        for key, value in self.arguments or ():
            if key == name:
                return value
        return None


@dataclass(frozen=True, slots=True)
class Class(Value):
    """A class object. Project classes are looked up by name in the `Project`."""

    name: str


@dataclass(frozen=True, slots=True)
class Function(Value):
    """A function of the linted project: `module` and the position of its `def` or `lambda`.

    `owner` is the class that it is a method of; `receiver` its bound first argument.
    """

    module: str
    qualname: str
    line: int
    column: int
    owner: str = ""
    receiver: Value | None = None


@dataclass(frozen=True, slots=True)
class Name(Value):
    """A module, function or attribute outside the project, by full name: "torch.nonzero".

    `receiver` is the object of a bound method ("torch.Tensor.item" of a tensor).
    """

    name: str
    receiver: Value | None = None


@dataclass(frozen=True, slots=True)
class Super(Value):
    """`super()` in a method of `owner`, for the object `receiver`."""

    owner: str
    receiver: Value


@dataclass(frozen=True, slots=True)
class Partial(Value):
    """functools.partial(function, …)."""

    function: Value
    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Union(Value):
    """One of several values."""

    alternatives: tuple[Value, ...]

    @property
    def members(self) -> tuple[Value, ...]:
        return self.alternatives

    @property
    def tensor(self) -> Tensor | None:
        for value in self.alternatives:
            if isinstance(value, Tensor):
                return value
        return None


_MOST_ALTERNATIVES = 6


def join(left: Value, right: Value) -> Value:
    """The least value that covers both. Tensors join field by field."""
    if left is right or left == right or right is NEVER:
        return left
    if left is NEVER:
        return right
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return _with_unknown(left, right)
    return union((*left.members, *right.members))


def _with_unknown(left: Value, right: Value) -> Value:
    # An unknown alternative takes certainty from a tensor, not its being one.
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
    if left is right:
        return left
    if type(left) is not type(right) and not (isinstance(left, (Const, Scalar)) and isinstance(right, (Const, Scalar))):
        return None
    if left == right:
        return left
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return join_tensors(left, right)
    if isinstance(left, (Const, Scalar)) and isinstance(right, (Const, Scalar)):
        chosen = _chosen_device(left, right)
        if chosen is not None:
            return chosen
        kind = scalar_type(left)
        if kind == scalar_type(right) and kind != "None":
            return Scalar(kind)
        return None
    if isinstance(left, Sequence) and isinstance(right, Sequence) and left.type == right.type:
        return _merge_sequences(left, right)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return _merge_mappings(left, right)
    if isinstance(left, DeviceValue) and isinstance(right, DeviceValue):
        if {left.device, right.device} == {Device.CPU, Device.CUDA}:
            # `cuda if available else cpu`: what is linted is linted for a GPU.
            return DeviceValue(Device.CUDA)
        same = left.place if left.place == right.place else ""
        return DeviceValue(join_devices(left.device, right.device), same)
    if isinstance(left, Dtype) and isinstance(right, Dtype):
        return Dtype("", left.kind if left.kind is right.kind else Kind.UNKNOWN)
    if isinstance(left, Array) and isinstance(right, Array):
        return Array()
    if isinstance(left, Instance) and isinstance(right, Instance) and left.cls == right.cls:
        return _merge_instances(left, right)
    return None


def _merge_instances(left: Instance, right: Instance) -> Instance:
    """An object of their class, with the arguments that both were given the names of."""
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
    """The device of `"cuda" if … else "cpu"`, None for any other two scalars."""
    if not (isinstance(left, Const) and isinstance(right, Const)):
        return None
    for one, other in ((left, right), (right, left)):
        if one.value == "cpu" and isinstance(other.value, str) and other.value.startswith("cuda"):
            return other
    return None


def _merge_sequences(left: Sequence, right: Sequence) -> Sequence:
    element = join(left.element, right.element)
    if left.items is not None and right.items is not None and len(left.items) == len(right.items):
        return Sequence(left.type, element, tuple(map(join, left.items, right.items)))
    return Sequence(left.type, element)


def _merge_mappings(left: Mapping, right: Mapping) -> Mapping:
    theirs = dict(right.items)
    both = {key: join(value, theirs[key]) for key, value in left.items if key in theirs}
    # The values of keys that only one of them has are among its elements still.
    one = [value for key, value in (*left.items, *right.items) if key not in both]
    return Mapping(union([left.element, right.element, *one]), tuple(both.items()))


_DEEPEST_VALUE = 3
_MOST_ITEMS = 16


def widen(value: Value, depth: int = _DEEPEST_VALUE) -> Value:
    """A value without what lies too deep in it, so that values that are built on values stay small."""
    if isinstance(value, Instance):
        if value.arguments is None:
            return value
        if depth == 0:
            return Instance(value.cls, None, value.origin)
        kept = tuple([(name, widen(inner, depth - 1)) for name, inner in value.arguments[:_MOST_ITEMS]])
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
            return Mapping(value.element if isinstance(value.element, (Tensor, Scalar)) else UNKNOWN)
        kept = tuple([(name, widen(inner, depth - 1)) for name, inner in value.items[:_MOST_ITEMS]])
        return Mapping(widen(value.element, depth - 1), kept)
    if isinstance(value, Union):
        return union(widen(member, depth) for member in value.alternatives)
    if isinstance(value, Function) and value.receiver is not None and depth == 0:
        return Function(value.module, value.qualname, value.line, value.column, value.owner)
    if isinstance(value, Partial):
        return value if depth else UNKNOWN
    return value


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
    return left if left is right else Device.UNKNOWN


def operand_in_charge(operands: Iterable[Tensor]) -> Tensor | None:
    """The operand whose device the result of an operation lives on; None without operands.

    Host tensors that meet device tensors are zero-dimensional: the device wins.
    """
    charge: Tensor | None = None
    for tensor in operands:
        if charge is None or _RANK[tensor.device] > _RANK[charge.device]:
            charge = tensor
        elif tensor.device is charge.device and tensor.place != charge.place:
            charge = charge.with_(place="")
    return charge


def same_place(tensor: Tensor, destination: Value) -> bool:
    """Whether a tensor is certainly where `destination`, a device or a tensor, says."""
    if not isinstance(destination, (DeviceValue, Tensor)) or destination.device is not tensor.device:
        return False
    if tensor.device in (Device.CPU, Device.CUDA, Device.MODEL):
        return True
    return bool(tensor.place) and tensor.place == destination.place


_RANK = {Device.CPU: 0, Device.META: 1, Device.UNKNOWN: 2, Device.CALLER: 3, Device.MODEL: 4, Device.CUDA: 5}


def scalar_type(value: Value) -> str:
    """The name of a scalar's Python type, empty for values that are no scalars."""
    if isinstance(value, Const):
        return "None" if value.value is None else type(value.value).__name__
    if isinstance(value, Scalar):
        return value.type
    return ""


def may_be_none(value: Value) -> bool:
    """Whether None is among the alternatives."""
    return any(member == NONE for member in value.members)


def without(value: Value, *unwanted: Value) -> Value:
    """The alternatives other than `unwanted`."""
    return union(member for member in value.members if member not in unwanted)

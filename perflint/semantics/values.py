"""The possible results of an expression: the values of the abstract interpreter.

Values are immutable and hashable, and no value holds others without bound: code that builds values on
values, again and again, must not make them slow to compare. How they join is in `lattice`.
"""

from __future__ import annotations

from enum import Enum, IntEnum

from perflint.frozen import dataclass, field


class Device(Enum):
    """The place of a tensor."""

    CPU = "cpu"
    CUDA = "cuda"
    MODEL = "model"
    """With the parameters of the module whose method this is: the device, in a hot path."""
    CALLER = "caller"
    """Wherever the caller of this function put its arguments."""
    UNKNOWN = "unknown"
    META = "meta"
    """The meta device, or an accelerator other than CUDA's."""


HEAVIEST = 1 << 13
"""The weight from which on the contents of a value are unknown: at most a dozen levels, a few thousand values."""


class Kind(Enum):
    """The dtype of a tensor or array, as far as performance cares."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    UNKNOWN = "unknown"


class Evidence(IntEnum):
    """Why a value is held to be a tensor; operations pass on the weakest evidence of their operands."""

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

    @property
    def weight(self) -> int:
        """The size of its contents: one for itself, and twice the weight of its parts."""
        return 1

    @property
    def is_open(self) -> bool:
        """True if something unknown is one of the alternatives."""
        return False

    @property
    def is_unknown(self) -> bool:
        """True if nothing is known, except that it may be None."""
        return False


@dataclass(frozen=True, slots=True)
class Unknown(Value):
    """An unknown value.

    `near` is CALLER for results of unknown code on tensors that are not on the CPU: where it holds
    tensors, these are likely to be off the CPU as well. It is CPU for the result of `x.cpu()`.
    """

    near: Device = Device.UNKNOWN
    moved: bool = False
    """It was moved there by `.cuda()` or `.to(device)`: a tensor, a module, or an object that holds some."""
    absorbs: bool = False
    """It stands for more alternatives than a union keeps."""

    @property
    def is_open(self) -> bool:
        return True

    @property
    def is_unknown(self) -> bool:
        return True


UNKNOWN = Unknown()
ANYTHING = Unknown(absorbs=True)
ON_CPU = Unknown(Device.CPU)
"""Something unknown that was moved to the CPU."""


@dataclass(frozen=True, slots=True)
class Never(Value):
    """No value at all: the element of an empty list, the result of a function that raises. There is one object."""

    def __new__(cls) -> Never:
        # Summaries of calls come from the cache and from other processes; reading them makes objects.
        return NEVER if "NEVER" in globals() else object.__new__(cls)

    @property
    def members(self) -> tuple[Value, ...]:
        return ()


NEVER = Never()


@dataclass(frozen=True, slots=True)
class Tensor(Value):
    """A torch.Tensor. `rank` is the number of dimensions, None when unknown.

    `leaf` is "parameter", "buffer" or "" for other tensors. `place` distinguishes unknown
    devices by the place where each was named.
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
        """True if it may live on the device (it is not known to live on the CPU)."""
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

    `default` is the default of the parameter, or of the field of a dataclass, that holds
    it.
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

    `held` is its kind, as far as that is known without the name: `x.dtype`.
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


_set = object.__setattr__


def _weight(named: tuple[tuple[str, Value], ...]) -> int:
    return sum([value.weight for _, value in named])


@dataclass(frozen=True, slots=True)
class Sequence(Value):
    """A list, tuple, set, torch.Size, generator or other iterable of `element`.

    `items` holds the elements one by one where they are known; `type` is "list", "tuple",
    "set", "size", "iterator", "range", … A "batch" is an element of a loader or the result of
    an unknown model: it may be a tensor, or a tuple, dict or object of tensors.
    """

    type: str
    element: Value = UNKNOWN
    items: tuple[Value, ...] | None = None
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        weight = 1 + 2 * self.element.weight
        if weight > HEAVIEST:
            _set(self, "element", UNKNOWN)
            weight = 3
        if self.items is not None:
            whole = weight + 2 * sum([item.weight for item in self.items])
            if whole > HEAVIEST:
                _set(self, "items", None)
            else:
                weight = whole
        _set(self, "weight", weight)

    @property
    def tensor(self) -> Tensor | None:
        return self.element.tensor if self.type == "batch" else None


@dataclass(frozen=True, slots=True)
class Mapping(Value):
    """A dict; `items` holds the values of the keys that are known."""

    element: Value = UNKNOWN
    items: tuple[tuple[str, Value], ...] = ()
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        weight = 1 + 2 * self.element.weight + 2 * _weight(self.items)
        if weight > HEAVIEST:
            _set(self, "items", ())
            _set(self, "element", UNKNOWN)
            weight = 3
        _set(self, "weight", weight)

    def get(self, key: str) -> Value:
        """The value of a string key."""
        for name, value in self.items:
            if name == key:
                return value
        return self.element


@dataclass(frozen=True, slots=True)
class Array(Value):
    """A numpy.ndarray (or pandas column, PIL image: data on the CPU that numpy handles).

    `rank` is the number of dimensions, None when unknown; NumPy's own numbers have none. An image has two or three.
    """

    kind: Kind = Kind.UNKNOWN
    rank: int | None = None
    is_image: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """The place of a construction: a module's dotted name and a position in it."""

    module: str
    line: int
    column: int
    """Line from 1 and UTF-8 offset from 0, as in `ast`."""


BY_GRAPHED = "make_graphed_callables(…)"
"""The `graphs` of what `make_graphed_callables` returns."""


@dataclass(frozen=True, slots=True)
class Instance(Value):
    """An object of a class other than a tensor's.

    `cls` is the class's full name: "torch.nn.Conv2d", "torch.utils.data.DataLoader",
    "torch.optim.Adam", or "package.module.Class" of the project. `arguments` are those of
    the constructor call by parameter name where its signature is known, by position
    ("0", "1", …) where not; None when the call was not seen. `graphs` is the call that may have made it run as CUDA
    graphs, in words; empty if none has. `takes_inputs_along` is true for a module that may move the tensors that
    it is called with to its own device, as `DataParallel` does.
    """

    cls: str
    arguments: tuple[tuple[str, Value], ...] | None = None
    origin: Origin | None = None
    graphs: str = ""
    takes_inputs_along: bool = False
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        weight = 1 + 2 * _weight(self.arguments) if self.arguments else 1
        if weight > HEAVIEST:
            _set(self, "arguments", None)
            weight = 1
        _set(self, "weight", weight)

    def argument(self, name: str) -> Value | None:
        """The constructor's argument, None if it was not given."""
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
    captured: tuple[tuple[str, Value], ...] = ()
    """Its free variables that the functions around it bind."""
    plain: bool = False
    """Without its decorators."""
    graphs: str = ""
    """The call that made it run as CUDA graphs, in words."""

    @property
    def weight(self) -> int:
        held = 0 if self.receiver is None else 2 * self.receiver.weight
        return 1 + held + sum([value.weight for _, value in self.captured])


@dataclass(frozen=True, slots=True)
class Name(Value):
    """A module, function or attribute outside the project, by full name: "torch.nonzero".

    `receiver` is the object of a bound method ("torch.Tensor.item" of a tensor).
    """

    name: str
    receiver: Value | None = None

    @property
    def weight(self) -> int:
        return 1 if self.receiver is None else 1 + 2 * self.receiver.weight


@dataclass(frozen=True, slots=True)
class TypeForm(Value):
    """A type that is spelled out, as the value of an expression: `tuple[int, str]`, `str | None`.

    `promised` is the value of a parameter with this annotation, with tensors on the device of the callers; `base` the
    class that it makes when it is called.
    """

    promised: Value
    base: Value = UNKNOWN

    @property
    def weight(self) -> int:
        return 1 + 2 * (self.promised.weight + self.base.weight)


@dataclass(frozen=True, slots=True)
class Super(Value):
    """`super()` in a method of `owner`, for the object `receiver`."""

    owner: str
    receiver: Value

    @property
    def weight(self) -> int:
        return 1 + 2 * self.receiver.weight


@dataclass(frozen=True, slots=True)
class Partial(Value):
    """functools.partial(function, …)."""

    function: Value
    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        held = self.function.weight + sum([value.weight for value in self.positional]) + _weight(self.keywords)
        weight = 1 + 2 * held
        if weight > HEAVIEST:
            _set(self, "function", UNKNOWN)
            _set(self, "positional", ())
            _set(self, "keywords", ())
            weight = 3
        _set(self, "weight", weight)


PROMISE = Name("typing.Callable")
"""Stands as the function of a `Partial` whose argument is the result that a `Callable[…, Tensor]` promises."""


@dataclass(frozen=True, slots=True)
class Union(Value):
    """One of several values. If one of them is unknown, it is the last."""

    alternatives: tuple[Value, ...]

    @property
    def members(self) -> tuple[Value, ...]:
        return self.alternatives

    @property
    def weight(self) -> int:
        return sum([value.weight for value in self.alternatives])

    @property
    def is_open(self) -> bool:
        return isinstance(self.alternatives[-1], Unknown)

    @property
    def is_unknown(self) -> bool:
        return self.is_open and all(isinstance(value, Unknown) or value == NONE for value in self.alternatives)

    @property
    def tensor(self) -> Tensor | None:
        return next((tensor for value in self.alternatives if (tensor := value.tensor) is not None), None)


def scalar_type(value: Value) -> str:
    """The name of a scalar's Python type; empty for other values."""
    if isinstance(value, Const):
        return "None" if value.value is None else type(value.value).__name__
    if isinstance(value, Scalar):
        return value.type
    return ""

"""NumPy's arrays: the results of its functions, and of the methods and attributes of arrays.

A rule of two words in the facts about a function gives the number of dimensions of its array, and its kind of dtype.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.semantics.facts import ranks
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.values import (
    INT,
    NONE,
    UNKNOWN,
    Array,
    Const,
    Device,
    DeviceValue,
    Dtype,
    Kind,
    Name,
    Scalar,
    Sequence,
    Tensor,
    Unknown,
    Value,
    scalar_type,
)

# The contents of a value, as NumPy sees them


def kind_of(value: Value) -> Kind:
    """The kind of an array that is created from a value."""
    while isinstance(value, Sequence):
        value = value.element
    if isinstance(value, (Array, Tensor)):
        return value.kind
    found = {_SCALAR_KINDS.get(scalar_type(member), Kind.UNKNOWN) for member in value.members}
    return promoted(found)


_SCALAR_KINDS = {"bool": Kind.BOOL, "int": Kind.INT, "float": Kind.FLOAT}


def promoted(kinds: set[Kind]) -> Kind:
    """The kind of the result of an operation on several kinds."""
    return next((kind for kind in (Kind.FLOAT, Kind.UNKNOWN, Kind.INT, Kind.BOOL) if kind in kinds), Kind.UNKNOWN)


def rank_of(value: Value) -> int | None:
    """How many dimensions an array made of a value has: of an array, a number, or lists of either."""
    depth = 0
    while isinstance(value, Sequence) and value.type in _NESTED:
        depth, value = depth + 1, value.element
    if isinstance(value, (Array, Tensor)):
        return None if value.rank is None else value.rank + depth
    is_number = value.members and all(scalar_type(member) in _SCALAR_KINDS for member in value.members)
    return depth if is_number else None


_NESTED = ("list", "tuple", "size", "range")


def kind_of_dtype(value: Value | None) -> Kind | None:
    """The kind that a `dtype=` argument means: `np.int64`, `int`, "float32"; None if there is none."""
    if value is None or value == NONE:
        return None
    if isinstance(value, Dtype):
        return value.kind
    name = value.name.rpartition(".")[2] if isinstance(value, Name) else ""
    if isinstance(value, Const) and isinstance(value.value, str):
        name = value.value
    return next((kind for start, kind in _DTYPES.items() if name.startswith(start)), Kind.UNKNOWN)


def _is_dtype(value: Value) -> bool:
    return isinstance(value, (Name, Dtype)) or scalar_type(value) == "str"


_DTYPES = {
    "int": Kind.INT,
    "uint": Kind.INT,
    "long": Kind.INT,
    "float": Kind.FLOAT,
    "double": Kind.FLOAT,
    "half": Kind.FLOAT,
    "single": Kind.FLOAT,
    "bool": Kind.BOOL,
}


# Operations


def combined(left: Value, right: Value, op: type[ast.operator]) -> Array:
    """The result of an operator."""
    kind = promoted({kind_of(left), kind_of(right)})
    if op is ast.Div and kind in (Kind.INT, Kind.BOOL):
        kind = Kind.FLOAT
    both = [rank_of(left), rank_of(right)]
    return Array(kind, ranks.product(both) if op is ast.MatMult else ranks.widest(both))


def iterated(array: Array) -> Value:
    """The items of a loop over an array."""
    return UNKNOWN if array.rank is None else Array(array.kind, max(array.rank - 1, 0))


# Functions


def made(rule: str, arguments: Arguments) -> Array:
    """The result of a function, by its two words in the facts."""
    dimensions, _, holds = rule.rpartition(" ")
    if arguments.unpacked or any(arguments.has(name, None) for name in _RESHAPING):
        return Array()
    given = arguments.at(0)
    is_image = dimensions == "first" and isinstance(given, Array) and given.is_image
    return Array(_held(holds, arguments), _dimensions(dimensions, arguments), is_image)


_RESHAPING = ("ndmin", "retstep")
"""Arguments that change how many dimensions there are."""


def _held(holds: str, arguments: Arguments) -> Kind:
    given = kind_of_dtype(arguments.keyword("dtype"))
    if given is None:
        found = (kind_of_dtype(value) for value in arguments.positional[1:] if _is_dtype(value))
        given = next((kind for kind in found if kind is not Kind.UNKNOWN), None)
    if given is not None:
        return given
    if holds in ("int", "float", "bool"):
        return Kind(holds)
    if holds == "fill":
        return kind_of(arguments.get("fill_value", 1) or UNKNOWN)
    return promoted({kind_of(value) for value in arguments.positional[: 1 if holds == "same" else None]})


def _dimensions(rule: str, arguments: Arguments) -> int | None:
    if rule.isdigit():
        return int(rule)
    named, _, position = rule.partition(" ")
    if named == "line":
        return _first(arguments) if arguments.has("axis", int(position)) else 1
    if position:
        return _sized(arguments.get(named, int(position)))
    return _RULES[rule](arguments)


def _sized(size: Value | None) -> int | None:
    """The dimensions of an array of a size: a number, or as many of them as a tuple has."""
    if isinstance(size, Sequence):
        return None if size.items is None else len(size.items)
    return 1 if size is not None and scalar_type(size) == "int" else None


def _each(arguments: Arguments) -> int | None:
    return len(arguments.positional) if all(scalar_type(size) == "int" for size in arguments.positional) else None


def _operands(arguments: Arguments) -> int | None:
    return ranks.widest([rank_of(value) for value in arguments.positional])


def _first(arguments: Arguments) -> int | None:
    return rank_of(arguments.at(0))


def _joined(arguments: Arguments) -> int | None:
    rank = _first(arguments)
    return rank - 1 if rank else None


def _drawn(arguments: Arguments) -> int | None:
    """As many as the first argument has, or the one of a range that a number stands for."""
    rank = _first(arguments)
    return 1 if rank == 0 else rank


def _more(arguments: Arguments) -> int | None:
    rank = _first(arguments)
    return None if rank is None or scalar_type(arguments.get("axis", 1) or UNKNOWN) != "int" else rank + 1


def _between(arguments: Arguments) -> int | None:
    """One dimension between two numbers, one more than theirs between two arrays."""
    ends = [value for value in arguments.positional[:2] if not isinstance(value, Unknown)]
    rank = ranks.widest([rank_of(value) for value in ends]) if ends else 0
    return None if rank is None else rank + 1


_RULES: dict[str, Callable[[Arguments], int | None]] = {
    "each": _each,
    "operands": _operands,
    "first": _first,
    "joined": _joined,
    "drawn": _drawn,
    "more": _more,
    "between": _between,
    "reduced": lambda arguments: ranks.reduced(_first(arguments), arguments),
}


def is_array_rule(rule: str) -> bool:
    """True if `made` can apply a rule."""
    dimensions, _, holds = rule.rpartition(" ")
    named, _, position = dimensions.partition(" ")
    known = dimensions.isdigit() or dimensions in _RULES or (named in ("line", "shape") and position.isdigit())
    return known and holds in ("int", "float", "bool", "same", "operands", "fill")


def is_number_rule(rule: str) -> bool:
    """True for the argument that makes an array of a number, its position, and the contents of the array."""
    argument, _, rest = rule.partition(" ")
    position, _, holds = rest.partition(" ")
    return argument in ("size", "each", "axis") and position.isdigit() and is_array_rule(f"first {holds}")


# Methods and attributes


def method(name: str, receiver: Value, arguments: Arguments) -> Value:
    """The result of a method of an array."""
    if not isinstance(receiver, Array):
        # An object of a class that derives from numpy.ndarray.
        receiver = Array()
    if name == "tolist":
        return ranks.nested_list(_number(receiver), receiver.rank)
    if name == "item":
        return _number(receiver) if receiver.kind is not Kind.UNKNOWN else Scalar("float")
    if name == "tobytes":
        return Scalar("bytes")
    if name == "astype":
        return Array(kind_of_dtype(arguments.get("dtype", 0)) or Kind.UNKNOWN, receiver.rank, receiver.is_image)
    if name in _SAME or (receiver.is_image and name in _IMAGES):
        return receiver
    if name in ("ravel", "flatten"):
        return Array(receiver.kind, 1)
    if name == "reshape":
        return Array(receiver.kind, _reshaped(arguments))
    if name in _REDUCTIONS:
        whole = not arguments.has("axis", 0) and not arguments.has("keepdims", None) and not arguments.unpacked
        rank = 0 if whole and receiver.rank is not None else ranks.reduced(receiver.rank, arguments)
        return Array(_reduced_kind(name, receiver.kind), rank)
    if name == "argsort":
        return Array(Kind.INT, receiver.rank)
    return Array(receiver.kind, _line_of(receiver, arguments)) if name in ("cumsum", "cumprod") else Array()


_SAME = frozenset("copy round clip transpose conj".split())
_IMAGES = frozenset("convert resize crop rotate filter quantize reduce".split())
"""Methods of an image of PIL that return one."""
_REDUCTIONS = frozenset("sum mean std var min max prod ptp any all argmax argmin".split())


def _number(array: Array) -> Value:
    return UNKNOWN if array.kind is Kind.UNKNOWN else Scalar(array.kind.value)


def _line_of(array: Array, arguments: Arguments) -> int | None:
    return array.rank if arguments.has("axis", 0) else 1


def _reshaped(arguments: Arguments) -> int | None:
    sizes = arguments.positional
    if arguments.unpacked:
        return None
    return _sized(sizes[0]) if len(sizes) == 1 else _each(arguments) or None


def _reduced_kind(name: str, kind: Kind) -> Kind:
    if name in ("any", "all"):
        return Kind.BOOL
    if name in ("argmax", "argmin"):
        return Kind.INT
    if name in ("mean", "std", "var"):
        return Kind.FLOAT
    return Kind.INT if kind is Kind.BOOL and name in ("sum", "prod") else kind


def attribute(array: Array, name: str) -> Value:
    """An attribute of an array; methods stay bound to it."""
    if name in ("shape", "strides"):
        return Sequence("tuple", INT, None if array.rank is None else (INT,) * array.rank)
    if name in ("ndim", "size", "nbytes", "itemsize"):
        return INT
    if name in ("T", "real", "imag", "values"):
        return array
    if name == "flat":
        return Array(array.kind, 1)
    if name == "device":
        return DeviceValue(Device.CPU)
    return Name(f"numpy.ndarray.{name}", array)

"""Python's own functions and the methods of its own types."""

from __future__ import annotations

from collections.abc import Callable

from perflint.semantics.facts import named
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.facts.devices import names_gpu
from perflint.semantics.interpreter import self_attributes
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.isinstance_tests import is_instance
from perflint.semantics.interpreter.lineage import info_of, lineage
from perflint.semantics.lattice import join, union
from perflint.semantics.structure import GROWS
from perflint.semantics.values import (
    BOOL,
    INT,
    NEVER,
    NONE,
    STR,
    UNKNOWN,
    Class,
    Const,
    Instance,
    Mapping,
    Scalar,
    Sequence,
    Unknown,
    Value,
    scalar_type,
)

_SCALARS = {
    "len": "int",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "complex": "complex",
    "str": "str",
    "repr": "str",
    "format": "str",
    "issubclass": "bool",
    "callable": "bool",
    "hasattr": "bool",
    "id": "int",
    "hash": "int",
    "ord": "int",
    "chr": "str",
    "any": "bool",
    "all": "bool",
    "input": "str",
    "round": "float",
}


def function(frame: Frame, name: str, arguments: Arguments) -> Value:
    """The result of a builtin function."""
    special = _FUNCTIONS.get(name)
    if special is not None:
        return special(frame, arguments)
    if name in _SCALARS:
        first = arguments.at(0)
        if name in ("int", "float", "bool", "str") and isinstance(first, Const) and len(arguments.positional) == 1:
            return _converted(name, first)
        return Scalar(_SCALARS[name])
    return NONE if name in ("print", "delattr") else UNKNOWN


def _converted(name: str, value: Const) -> Value:
    if isinstance(value.value, (int, float, bool)):
        kind = {"int": int, "float": float, "bool": bool, "str": str}[name]
        try:
            return Const(kind(value.value))
        except (OverflowError, ValueError):
            return Scalar(name)
    return Scalar(name)


def _range(frame: Frame, arguments: Arguments) -> Value:
    return Sequence("range", INT)


def _enumerate(frame: Frame, arguments: Arguments) -> Value:
    pair = (INT, frame.iterate(arguments.at(0)))
    return Sequence("iterator", Sequence("tuple", UNKNOWN, pair))


def _zip(frame: Frame, arguments: Arguments) -> Value:
    if arguments.unpacked:
        # `zip(*pairs)`: a sequence for each place in a pair.
        pair = arguments.rest if not arguments.positional else UNKNOWN
        if isinstance(pair, Unknown):
            return Sequence("iterator")
        if not isinstance(pair, Sequence) or pair.items is None:
            return Sequence("iterator", Sequence("tuple", frame.iterate(pair)))
        columns: tuple[Value, ...] = tuple([Sequence("tuple", value) for value in pair.items])
        return Sequence("iterator", union(columns), columns)
    items = tuple([frame.iterate(value) for value in arguments.positional])
    return Sequence("iterator", Sequence("tuple", union(items), items), _rows(arguments.positional))


def _rows(columns: tuple[Value, ...]) -> tuple[Value, ...] | None:
    """The items of `zip`, if those of all its arguments are known."""
    known = [column.items for column in columns if isinstance(column, Sequence) and column.items is not None]
    if len(known) < len(columns) or not known or len({len(items) for items in known}) > 1:
        return None
    return tuple([Sequence("tuple", union(row), row) for row in zip(*known, strict=True)])


def _same_elements(kind: str) -> Callable[[Frame, Arguments], Value]:
    def convert(frame: Frame, arguments: Arguments) -> Value:
        if not arguments.positional:
            return Sequence(kind, union(()), () if kind in ("tuple",) else None)
        value = arguments.at(0)
        items = value.items if isinstance(value, Sequence) else None
        return Sequence(kind, frame.iterate(value), items if kind != "set" else None)

    return convert


def _dict(frame: Frame, arguments: Arguments) -> Value:
    first = arguments.at(0)
    if isinstance(first, Mapping):
        base = first
    else:
        pair = frame.iterate(first)
        held = pair.items[1] if isinstance(pair, Sequence) and pair.items and len(pair.items) == 2 else UNKNOWN
        base = Mapping(held if arguments.positional else union(()))
    items = {**dict(base.items), **dict(arguments.keywords)}
    return Mapping(union([base.element, *items.values()]), tuple(items.items()))


def _map(frame: Frame, arguments: Arguments) -> Value:
    function, over = arguments.at(0), arguments.positional[1:]
    if len(over) == 1 and isinstance(over[0], Sequence) and over[0].items is not None:
        results = tuple([frame.apply(function, Arguments((item,))) for item in over[0].items[:_MOST_APART]])
        if len(results) == len(over[0].items):
            return Sequence("iterator", union(results), results)
    given = tuple([frame.iterate(value) for value in over])
    return Sequence("iterator", frame.apply(function, Arguments(given)))


_MOST_APART = 8
"""Elements to which `map` is applied one by one."""


def _filter(frame: Frame, arguments: Arguments) -> Value:
    return Sequence("iterator", frame.iterate(arguments.at(1)))


def _sorted(frame: Frame, arguments: Arguments) -> Value:
    key = arguments.keyword("key")
    element = frame.iterate(arguments.at(0))
    if key is not None:
        frame.apply(key, Arguments((element,)))
    return Sequence("list", element)


def _reversed(frame: Frame, arguments: Arguments) -> Value:
    value = arguments.at(0)
    items = tuple(reversed(value.items)) if isinstance(value, Sequence) and value.items is not None else None
    return Sequence("iterator", frame.iterate(value), items)


def _iter(frame: Frame, arguments: Arguments) -> Value:
    return Sequence("iterator", frame.iterate(arguments.at(0)))


def _next(frame: Frame, arguments: Arguments) -> Value:
    value = frame.iterate(arguments.at(0))
    default = arguments.get("default", 1)
    return value if default is None else join(value, default)


def _sum(frame: Frame, arguments: Arguments) -> Value:
    element = frame.iterate(arguments.at(0))
    if element.tensor is not None:
        return element.tensor
    if isinstance(element, Sequence):
        return Sequence(element.type, element.element)
    types = {scalar_type(member) for member in element.members}
    if types and types <= {"int", "float", "bool"}:
        return Scalar("float" if "float" in types else "int")
    return UNKNOWN


def _extreme(frame: Frame, arguments: Arguments) -> Value:
    values = arguments.positional
    if len(values) == 1:
        return frame.iterate(values[0])
    return union(Scalar(scalar_type(v)) if isinstance(v, Const) and v != NONE else v for v in values)


def _abs(frame: Frame, arguments: Arguments) -> Value:
    value = arguments.at(0)
    return Scalar(scalar_type(value)) if isinstance(value, Const) else value


def _getattr(frame: Frame, arguments: Arguments) -> Value:
    name = arguments.at(1)
    value: Value = UNKNOWN
    if isinstance(name, Const) and isinstance(name.value, str):
        value = frame.attribute(arguments.at(0), name.value)
        if value.is_unknown and name.value[1:].endswith("*"):
            value = _methods(frame, arguments.at(0), name.value[:-1]) or value
    return value if len(arguments.positional) < 3 else join(value, arguments.at(2))


def _methods(frame: Frame, receiver: Value, start: str) -> Value | None:
    """The methods of an object whose names begin so: `getattr(self, f"loss_{kind}")`."""
    order = lineage(frame, receiver.cls) if isinstance(receiver, Instance) else ()
    known = (info for cls in order if (info := info_of(frame, cls)) is not None)
    names = {name for info in known for name in info.methods if name.startswith(start)}
    return union(frame.attribute(receiver, name) for name in sorted(names)) if names else None


def _round(frame: Frame, arguments: Arguments) -> Value:
    tensor = arguments.at(0).tensor
    if tensor is not None:
        return tensor
    return Scalar("float" if len(arguments.positional) > 1 else "int")


def _type(frame: Frame, arguments: Arguments) -> Value:
    first = arguments.at(0)
    return Class(first.cls) if isinstance(first, Instance) else UNKNOWN


def _setattr(frame: Frame, arguments: Arguments) -> Value:
    name = arguments.at(1)
    if isinstance(name, Const) and isinstance(name.value, str):
        self_attributes.set_attribute(frame, arguments.at(0), name.value, arguments.at(2))
    return NONE


def _isinstance(frame: Frame, arguments: Arguments) -> Value:
    known = is_instance(frame, arguments.at(0), arguments.at(1))
    return BOOL if known is None else Const(known)


def _sliced(frame: Frame, arguments: Arguments) -> Value:
    return Scalar("slice")


_FUNCTIONS: dict[str, Callable[[Frame, Arguments], Value]] = {
    "range": _range,
    "enumerate": _enumerate,
    "zip": _zip,
    "list": _same_elements("list"),
    "tuple": _same_elements("tuple"),
    "set": _same_elements("set"),
    "frozenset": _same_elements("set"),
    "dict": _dict,
    "map": _map,
    "filter": _filter,
    "sorted": _sorted,
    "reversed": _reversed,
    "iter": _iter,
    "next": _next,
    "sum": _sum,
    "max": _extreme,
    "min": _extreme,
    "abs": _abs,
    "getattr": _getattr,
    "round": _round,
    "type": _type,
    "slice": _sliced,
    "isinstance": _isinstance,
    "setattr": _setattr,
}


def method(frame: Frame, name: str, receiver: Value, arguments: Arguments) -> Value:
    """The result of a method of a builtin type; methods that change the receiver rebind it."""
    kind, _, called = name.removeprefix("builtins.").rpartition(".")
    if isinstance(receiver, Mapping):
        return _of_mapping(receiver, called, arguments)
    if isinstance(receiver, Sequence):
        return _of_sequence(frame, receiver, called, arguments)
    if kind in ("str", "bytes"):
        return receiver if called == "format" and names_gpu(receiver) else _of_text(called)
    return UNKNOWN


def _of_mapping(receiver: Mapping, name: str, arguments: Arguments) -> Value:
    if name in ("get", "pop", "setdefault"):
        key = arguments.at(0)
        if isinstance(key, Const) and isinstance(key.value, str):
            value = named.entry(receiver, key.value)
        else:
            value = _everything(receiver)
        default = arguments.at(1) if len(arguments.positional) > 1 else NONE if name == "get" else None
        known = isinstance(key, Const) and any(item == key.value for item, _ in receiver.items)
        return value if default is None or known else join(value, default)
    if name == "values":
        return Sequence("iterator", _everything(receiver))
    if name == "keys":
        return Sequence("iterator", STR)
    if name == "items":
        everything = _everything(receiver)
        pair = Sequence("tuple", everything, (STR, everything))
        pairs = tuple([Sequence("tuple", value, (Const(key), value)) for key, value in receiver.items])
        # If there are no elements besides these, as in `**kwargs`, all pairs are known.
        return Sequence("iterator", pair, pairs if pairs and receiver.element is NEVER else None)
    return receiver if name == "copy" else UNKNOWN


def _everything(held: Mapping) -> Value:
    """The join of all values of a dict."""
    return union([held.element, *(value for _, value in held.items)])


def _of_sequence(frame: Frame, receiver: Sequence, name: str, arguments: Arguments) -> Value:
    if name in ("pop", "popleft", "__getitem__"):
        return frame.iterate(receiver)
    if name in ("next", "__next__") and receiver.type == "iterator":
        return frame.iterate(receiver)
    if name == "__iter__":
        return Sequence("iterator", frame.iterate(receiver))
    if name in ("copy", "union", "difference", "intersection"):
        return Sequence(receiver.type, receiver.element)
    if name in ("index", "count", "numel"):
        return INT
    return UNKNOWN


_TEXT = {
    "split": Sequence("list", STR),
    "rsplit": Sequence("list", STR),
    "splitlines": Sequence("list", STR),
    "partition": Sequence("tuple", STR, (STR,) * 3),
    "rpartition": Sequence("tuple", STR, (STR,) * 3),
    "find": INT,
    "rfind": INT,
    "index": INT,
    "count": INT,
    "startswith": BOOL,
    "endswith": BOOL,
    "encode": Scalar("bytes"),
}


def _of_text(name: str) -> Value:
    if name.startswith("is"):
        return BOOL
    return _TEXT.get(name, STR)


GROWING = {"append": 0, "add": 0, "appendleft": 0, "insert": 1}
"""Methods that put an argument into their receiver, with its position."""


CHANGES = GROWS | frozenset("setdefault reverse sort pop popleft remove rotate clear __setitem__ __delitem__".split())
"""Methods that put something into their receiver, or move its items."""


def grown(receiver: Value, name: str, arguments: Arguments, element: Value) -> Value | None:
    """The receiver after a method that puts something into it, or moves its items; None when nothing changes."""
    if name == "setdefault" and isinstance(receiver, Mapping):
        return Mapping(join(receiver.element, arguments.at(1)), receiver.items)
    if name == "__setitem__" and isinstance(receiver, (Mapping, Sequence)):
        held = [receiver.element, arguments.at(1)]
        if isinstance(receiver, Mapping):
            return Mapping(union([*held, *(value for _, value in receiver.items)]))
        return Sequence(receiver.type, union(held))
    if isinstance(receiver, Sequence) and receiver.items and name in CHANGES - GROWS:
        return Sequence(receiver.type, receiver.element)
    if isinstance(receiver, Sequence) and receiver.type in ("list", "set", "deque"):
        if name in GROWING:
            return Sequence(receiver.type, join(receiver.element, arguments.at(GROWING[name])))
        if name in ("extend", "update"):
            return Sequence(receiver.type, join(receiver.element, element))
        return None
    if isinstance(receiver, Mapping) and name == "update":
        first = arguments.at(0)
        added = dict(arguments.keywords)
        if isinstance(first, Mapping):
            added = {**dict(first.items), **added}
            return Mapping(join(receiver.element, first.element), tuple({**dict(receiver.items), **added}.items()))
        return Mapping(join(receiver.element, UNKNOWN), tuple({**dict(receiver.items), **added}.items()))
    return None

"""Functions of the standard library that pass values through: functools, itertools, operator, collections."""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter import builtin_calls
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.operators import binary
from perflint.semantics.lattice import join, union
from perflint.semantics.values import (
    BOOL,
    FLOAT,
    INT,
    NEVER,
    UNKNOWN,
    Const,
    Instance,
    Kind,
    Mapping,
    Name,
    Partial,
    Scalar,
    Sequence,
    Value,
    scalar_type,
)

Special = Callable[[Frame, Arguments], Value]
_LONGEST_REDUCTION = 8


# functools and operator


def _partial(frame: Frame, arguments: Arguments) -> Value:
    if not arguments.positional:
        return UNKNOWN
    return Partial(arguments.positional[0], arguments.positional[1:], arguments.keywords)


def _reduce(frame: Frame, arguments: Arguments) -> Value:
    """The function, applied until its result stays the same."""
    element = frame.iterate(arguments.at(1))
    found = join(element, arguments.at(2)) if len(arguments.positional) > 2 else element
    for _ in range(_LONGEST_REDUCTION):
        reduced = join(_number(found), frame.apply(arguments.at(0), Arguments((_number(found), element))))
        if reduced == found:
            return found
        found = reduced
    return UNKNOWN


def _number(value: Value) -> Value:
    return Scalar(scalar_type(value)) if scalar_type(value) in ("int", "float", "bool") else value


def _getter(kind: str) -> Special:
    """`itemgetter` and `attrgetter`: a function that the getter's arguments are part of."""

    def make(frame: Frame, arguments: Arguments) -> Value:
        return Partial(Name(f"operator.{kind}.__call__"), (Sequence("tuple", UNKNOWN, arguments.positional),))

    return make


def _got(get: Callable[[Frame, Value, Value], Value]) -> Special:
    def call(frame: Frame, arguments: Arguments) -> Value:
        wanted, value = arguments.at(0), arguments.at(1)
        keys = (wanted.items if isinstance(wanted, Sequence) else None) or ()
        found = tuple([get(frame, value, key) for key in keys])
        return found[0] if len(found) == 1 else Sequence("tuple", union(found), found)

    return call


def _item(frame: Frame, value: Value, key: Value) -> Value:
    return union(frame.item(member, key) for member in value.members)


def _attribute(frame: Frame, value: Value, key: Value) -> Value:
    if not isinstance(key, Const) or not isinstance(key.value, str):
        return UNKNOWN
    for name in key.value.split("."):
        value = frame.attribute(value, name)
    return value


_OPERATORS: dict[str, type[ast.operator]] = {
    "add": ast.Add,
    "sub": ast.Sub,
    "mul": ast.Mult,
    "truediv": ast.Div,
    "floordiv": ast.FloorDiv,
    "mod": ast.Mod,
    "pow": ast.Pow,
    "matmul": ast.MatMult,
    "and_": ast.BitAnd,
    "or_": ast.BitOr,
    "xor": ast.BitXor,
    "iadd": ast.Add,
    "imul": ast.Mult,
}


def _operator(op: type[ast.operator]) -> Special:
    return lambda frame, arguments: binary(arguments.at(0), op(), arguments.at(1))


def _comparison(frame: Frame, arguments: Arguments) -> Value:
    compared = binary(arguments.at(0), ast.BitAnd(), arguments.at(1)).tensor
    return BOOL if compared is None else compared.with_(kind=Kind.BOOL, leaf="")


# itertools


def _chain(frame: Frame, arguments: Arguments) -> Value:
    if arguments.unpacked:
        return Sequence("iterator", frame.iterate(arguments.rest))
    return Sequence("iterator", union(frame.iterate(value) for value in arguments.positional))


def _chain_of_one(frame: Frame, arguments: Arguments) -> Value:
    return Sequence("iterator", frame.iterate(frame.iterate(arguments.at(0))))


def _same_elements(frame: Frame, arguments: Arguments) -> Value:
    return Sequence("iterator", frame.iterate(arguments.at(0)))


def _second_elements(frame: Frame, arguments: Arguments) -> Value:
    return Sequence("iterator", frame.iterate(arguments.at(1)))


def _product(frame: Frame, arguments: Arguments) -> Value:
    if arguments.unpacked or arguments.keywords:
        return Sequence("iterator", Sequence("tuple", union(map(frame.iterate, arguments.positional))))
    items = tuple([frame.iterate(value) for value in arguments.positional])
    return Sequence("iterator", Sequence("tuple", union(items), items))


def _combinations(frame: Frame, arguments: Arguments) -> Value:
    element, length = frame.iterate(arguments.at(0)), arguments.literal("r", 1)
    known = isinstance(length, int) and 0 < length <= _LONGEST_REDUCTION
    return Sequence("iterator", Sequence("tuple", element, (element,) * int(str(length)) if known else None))


def _pairwise(frame: Frame, arguments: Arguments) -> Value:
    element = frame.iterate(arguments.at(0))
    return Sequence("iterator", Sequence("tuple", element, (element, element)))


def _batched(frame: Frame, arguments: Arguments) -> Value:
    return Sequence("iterator", Sequence("tuple", frame.iterate(arguments.at(0))))


def _repeat(frame: Frame, arguments: Arguments) -> Value:
    return Sequence("iterator", arguments.at(0))


def _count(frame: Frame, arguments: Arguments) -> Value:
    return Sequence("iterator", _number(arguments.at(0)) if arguments.positional else INT)


def _groups(frame: Frame, arguments: Arguments) -> Value:
    element = frame.iterate(arguments.at(0))
    key = arguments.get("key", 1)
    pair = (element if key is None else frame.apply(key, Arguments((element,))), Sequence("iterator", element))
    return Sequence("iterator", Sequence("tuple", union(pair), pair))


def _accumulate(frame: Frame, arguments: Arguments) -> Value:
    element = frame.iterate(arguments.at(0))
    return Sequence("iterator", element if element.tensor else _number(element))


def _copies(frame: Frame, arguments: Arguments) -> Value:
    return Sequence("tuple", _same_elements(frame, arguments))


def _starmap(frame: Frame, arguments: Arguments) -> Value:
    passed = frame.iterate(arguments.at(1))
    items = passed.items if isinstance(passed, Sequence) else None
    given = Arguments(unpacked=True) if items is None else Arguments(items)
    return Sequence("iterator", frame.apply(arguments.at(0), given))


# collections


def _deque(frame: Frame, arguments: Arguments) -> Value:
    return Sequence("deque", frame.iterate(arguments.at(0)) if arguments.positional else NEVER)


def _ordered(frame: Frame, arguments: Arguments) -> Value:
    return builtin_calls.function(frame, "dict", arguments)


def _counter(frame: Frame, arguments: Arguments) -> Value:
    return Mapping(INT)


def _default_dict(frame: Frame, arguments: Arguments) -> Value:
    """A dict whose missing keys are made by a function."""
    made = frame.apply(arguments.at(0), Arguments()) if arguments.positional else NEVER
    rest = Arguments(arguments.positional[1:], arguments.keywords, arguments.unpacked)
    held = builtin_calls.function(frame, "dict", rest)
    assert isinstance(held, Mapping)
    return Mapping(join(held.element, _number(made)), held.items)


NAMED_TUPLE = "collections.namedtuple.__call__"


def _named_tuple(frame: Frame, arguments: Arguments) -> Value:
    """A class of tuples, with the names of its fields."""
    fields = arguments.get("field_names", 1)
    names: tuple[Value, ...] | None = None
    if isinstance(fields, Const) and isinstance(fields.value, str):
        names = tuple([Const(name) for name in fields.value.replace(",", " ").split()])
    elif isinstance(fields, Sequence):
        names = fields.items
    return UNKNOWN if names is None else Partial(Name(NAMED_TUPLE), (Sequence("tuple", UNKNOWN, names),))


def _make_tuple(frame: Frame, arguments: Arguments) -> Value:
    names = arguments.at(0)
    assert isinstance(names, Sequence)
    fields = [name.value for name in names.items or () if isinstance(name, Const) and isinstance(name.value, str)]
    given = dict(zip(fields, arguments.positional[1:], strict=False)) | dict(arguments.keywords)
    return Instance("collections.namedtuple", tuple([(name, given.get(name, UNKNOWN)) for name in fields]))


FUNCTIONS: dict[str, Special] = {
    "functools.partial": _partial,
    "functools.reduce": _reduce,
    "operator.itemgetter": _getter("itemgetter"),
    "operator.itemgetter.__call__": _got(_item),
    "operator.attrgetter": _getter("attrgetter"),
    "operator.attrgetter.__call__": _got(_attribute),
    **{f"operator.{name}": _operator(op) for name, op in _OPERATORS.items()},
    **{f"operator.{name}": _comparison for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "operator.getitem": lambda frame, arguments: _item(frame, arguments.at(0), arguments.at(1)),
    "itertools.chain": _chain,
    "itertools.chain.from_iterable": _chain_of_one,
    "itertools.islice": _same_elements,
    "itertools.cycle": _same_elements,
    "itertools.takewhile": _second_elements,
    "itertools.dropwhile": _second_elements,
    "itertools.filterfalse": _second_elements,
    "itertools.compress": _same_elements,
    "itertools.zip_longest": lambda frame, arguments: builtin_calls.function(frame, "zip", arguments),
    "itertools.product": _product,
    "itertools.combinations": _combinations,
    "itertools.permutations": _combinations,
    "itertools.combinations_with_replacement": _combinations,
    "itertools.pairwise": _pairwise,
    "itertools.batched": _batched,
    "itertools.repeat": _repeat,
    "itertools.count": _count,
    "itertools.groupby": _groups,
    "itertools.accumulate": _accumulate,
    "itertools.tee": _copies,
    "itertools.starmap": _starmap,
    "collections.deque": _deque,
    "collections.OrderedDict": _ordered,
    "collections.Counter": _counter,
    "collections.defaultdict": _default_dict,
    "collections.namedtuple": _named_tuple,
    NAMED_TUPLE: _make_tuple,
    "enum.auto": lambda frame, arguments: INT,
    "time.time": lambda frame, arguments: FLOAT,
    "contextlib.nullcontext": lambda frame, arguments: Sequence("iterator", arguments.at(0)),
}

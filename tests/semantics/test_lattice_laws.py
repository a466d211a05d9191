"""The laws of the lattice: a join does not depend on the order of what is joined."""

from __future__ import annotations

import itertools

from hypothesis import example, given, settings
from hypothesis import strategies as st

from perflint.semantics.lattice import MOST_KEYS, MOST_MEMBERS, join, union, widen, with_key
from perflint.semantics.values import (
    ANYTHING,
    HEAVIEST,
    NEVER,
    NONE,
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
    Origin,
    Partial,
    Scalar,
    Sequence,
    Super,
    Tensor,
    TypeForm,
    Union,
    Unknown,
    Value,
)

_DEVICES, _KINDS, _RANKS = st.sampled_from(Device), st.sampled_from(Kind), st.sampled_from([None, 0, 1, 2])
_PLACES = st.sampled_from(["", "a:1", "b:2"])
_TEXTS = st.sampled_from(
    ["", "cpu", "cpu:0", "cuda", "cuda:0", "cuda:1", "mean", "torch.FloatTensor", "torch.cuda.FloatTensor"]
)
_CONSTANTS: st.SearchStrategy[Const] = st.one_of(
    st.sampled_from([NONE, Const(...), Const(True), Const(0), Const(1), Const(1.0), Const(b"a"), Const(b"b")]),
    _TEXTS.map(Const),
)
_SCALARS = st.one_of(
    st.sampled_from(["int", "float", "bool", "str", "bytes", "complex"]).map(Scalar),
    _TEXTS.map(lambda text: Scalar("str", Const(text))),
    st.sampled_from([Scalar("int", Const(0)), Scalar("int", Const(1)), Scalar("bool", Const(True))]),
)
_DTYPES = st.one_of(
    st.sampled_from(["bool", "float16", "float32", "int64", "complex64"]).map(Dtype),
    st.builds(Dtype, st.just(""), _KINDS),
)
_SIMPLE: st.SearchStrategy[Value] = st.one_of(
    st.builds(
        Tensor,
        _DEVICES,
        _KINDS,
        _RANKS,
        st.sampled_from(Evidence),
        st.booleans(),
        st.sampled_from(["", "buffer"]),
        _PLACES,
    ),
    st.sampled_from(
        [
            NEVER,
            UNKNOWN,
            Unknown(Device.CALLER),
            Unknown(Device.CALLER, moved=True),
            Unknown(Device.CUDA, moved=True),
            ANYTHING,
        ]
    ),
    _CONSTANTS,
    _SCALARS,
    _DTYPES,
    st.builds(DeviceValue, _DEVICES, _PLACES),
    st.builds(Array, _KINDS, _RANKS),
    st.sampled_from("abc").map(Class),
    st.sampled_from(["torch.relu", "torch.FloatTensor", "torch.cuda.FloatTensor"]).map(Name),
    st.builds(Function, st.just("a"), st.sampled_from("fg"), st.integers(1, 2), st.just(0)),
)
_TYPES = st.sampled_from(["list", "tuple", "batch"])
_CLASSES = st.sampled_from(["a.B", "a.C", "torch.nn.ModuleList", "torch.nn.ModuleDict"])
_ORIGINS = st.sampled_from([None, Origin("a", 1, 0), Origin("a", 2, 0)])


def _named(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[tuple[tuple[str, Value], ...]]:
    keys = st.lists(st.sampled_from("xyz"), unique=True, max_size=3)
    return keys.flatmap(lambda names: st.tuples(*(st.tuples(st.just(name), inner) for name in names)))


def _holding(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    few = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Sequence, _TYPES, inner, st.none() | few),
        st.builds(Mapping, inner, _named(inner)),
        st.builds(Instance, _CLASSES, st.none() | _named(inner), _ORIGINS),
        st.builds(Name, st.just("torch.Tensor.item"), inner),
        st.builds(Function, st.just("a"), st.just("f"), st.just(1), st.just(0), receiver=inner, captured=_named(inner)),
        st.builds(Partial, inner, few, _named(inner)),
        st.builds(TypeForm, inner, inner),
        st.builds(Super, st.just("a.B"), inner),
        st.lists(inner, min_size=2, max_size=3).map(union),
    )


VALUES = st.recursive(_SIMPLE, _holding, max_leaves=8)
T, CPU = Tensor(Device.CUDA), Tensor(Device.CPU)


@settings(deadline=None)
@given(VALUES)
def test_joins_are_idempotent(value: Value) -> None:
    assert join(value, value) == value
    assert union([value, value]) == value


@settings(deadline=None)
@given(VALUES, VALUES)
@example(Const("cuda"), Const("cuda:0"))
@example(Const("cuda:0"), Const("cuda:1"))
@example(NONE, T)
@example(Sequence("list", NONE), Sequence("list", T))
@example(Mapping(NEVER, (("x", T), ("y", NONE))), Mapping(NEVER, (("y", NONE), ("x", T))))
def test_joins_are_commutative(one: Value, other: Value) -> None:
    assert join(one, other) == join(other, one)
    assert union([one, other]) == union([other, one])


@settings(deadline=None, max_examples=300)
@given(VALUES, VALUES, VALUES)
@example(NONE, T, CPU)
@example(Sequence("batch", T), CPU, NONE)
@example(DeviceValue(Device.CPU), DeviceValue(Device.CUDA), DeviceValue(Device.MODEL))
@example(DeviceValue(Device.CPU), DeviceValue(Device.META), DeviceValue(Device.CUDA))
@example(Const("cpu"), Const("cuda:0"), Const("mean"))
@example(Const("mean"), Const("sum"), Const(""))
@example(
    Instance("torch.nn.ModuleList", ()), Instance("torch.nn.ModuleList", (("x", T),)), Instance("torch.nn.ModuleList")
)
def test_joins_are_associative(one: Value, other: Value, third: Value) -> None:
    assert join(join(one, other), third) == join(one, join(other, third)) == union([third, other, one])


@settings(deadline=None)
@given(st.lists(VALUES, max_size=10).flatmap(lambda values: st.tuples(st.just(values), st.permutations(values))))
def test_unions_forget_the_order(lists: tuple[list[Value], list[Value]]) -> None:
    assert union(lists[0]) == union(lists[1])


@settings(deadline=None)
@given(st.lists(VALUES, max_size=10))
def test_members_stay_apart(values: list[Value]) -> None:
    members = union(values).members
    assert not any(isinstance(member, (Union, type(NEVER))) for member in members)
    for one, other in itertools.combinations(members, 2):
        assert union([other, one]).members == (one, other)


@settings(deadline=None)
@given(VALUES, VALUES)
def test_widening_is_the_same_for_equal_values(one: Value, other: Value) -> None:
    assert widen(join(one, other)) == widen(join(other, one))


@settings(deadline=None)
@given(st.lists(st.integers(0, 9).map(lambda number: Class(str(number))) | VALUES, max_size=12), st.data())
def test_unions_of_many_values_are_associative(values: list[Value], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=4)))
    parts = [union(values[start:end]) for start, end in itertools.pairwise([0, *cuts, len(values)])]
    assert union(parts) == union(values)


def test_more_members_than_a_union_keeps_are_anything_in_any_order() -> None:
    values = [Class(str(number)) for number in range(MOST_MEMBERS + 1)]
    assert union(values) is union(reversed(values)) is ANYTHING
    assert union([*values, T]) == union([T, *values]) == union([T, ANYTHING])
    # Members that are joined later are among anything already, except a tensor.
    assert join(ANYTHING, values[0]) == join(values[0], ANYTHING) == join(UNKNOWN, ANYTHING) == ANYTHING
    assert join(join(union(values), T), CPU) == join(union(values), join(T, CPU))


def test_something_unknown_is_a_member_like_any_other() -> None:
    assert join(NONE, UNKNOWN) == join(UNKNOWN, NONE) == Union((NONE, UNKNOWN))
    assert join(Union((T, UNKNOWN)), NONE) == join(T, Union((NONE, UNKNOWN))) == Union((T, NONE, UNKNOWN))
    near = Unknown(Device.CALLER)
    assert join(near, near) == near
    assert join(UNKNOWN, near) == join(near, UNKNOWN) == UNKNOWN


def test_joins_keep_all_keys() -> None:
    keys = [str(number) for number in range(MOST_KEYS)]
    one, other = (Mapping(NEVER, tuple((start + key, Class(start)) for key in keys)) for start in "ab")
    both = join(one, other)
    assert both == join(other, one)
    assert isinstance(both, Mapping) and len(both.items) == 2 * MOST_KEYS
    # Only a dict that grows drops its first keys.
    grown = with_key(both, "c", T)
    assert len(grown.items) == MOST_KEYS
    assert grown.get("a0") == union([Class("a"), Class("b")])


def test_the_limit_of_weight_is_commutative() -> None:
    """It drops parts of one value, so it is no part of the join, and associativity ends there."""
    heavy = Sequence("list", NONE, tuple(Const(number) for number in range(HEAVIEST // 3)))
    light = Sequence("tuple", heavy)
    assert heavy.items is not None
    assert join(heavy, light) == join(light, heavy)
    assert join(Sequence("list", heavy), Sequence("list", light)) == join(
        Sequence("list", light), Sequence("list", heavy)
    )

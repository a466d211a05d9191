"""The lattice: joining and widening values."""

from __future__ import annotations

import itertools
import pickle

import pytest

from perflint.semantics.explain.describe import describe
from perflint.semantics.facts.devices import operand_in_charge, same_place
from perflint.semantics.lattice import MOST_KEYS, join, union, widen, with_key, without
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
    Union,
    Value,
    scalar_type,
)
from tests.semantics.notation import show

CUDA, CPU, MODEL = (Tensor(device, Kind.FLOAT, 2) for device in (Device.CUDA, Device.CPU, Device.MODEL))
SAMPLES: tuple[Value, ...] = (
    NEVER,
    NONE,
    UNKNOWN,
    CUDA,
    CPU,
    MODEL,
    Tensor(evidence=Evidence.USE),
    Tensor(Device.CPU, Kind.BOOL, 1, pinned=True),
    Tensor(Device.UNKNOWN, place="device:3"),
    Const(1),
    Const(1.0),
    Const(True),
    Const("cuda"),
    Const("cpu"),
    Scalar("int"),
    Scalar("int", Const(3)),
    Scalar("str"),
    DeviceValue(Device.CUDA),
    DeviceValue(place="device:3"),
    Dtype("bool"),
    Dtype("float16"),
    Dtype("", Kind.FLOAT),
    Sequence("list", CUDA),
    Sequence("list", NEVER, ()),
    Sequence("tuple", CPU, (CPU, CPU)),
    Sequence("batch", CPU),
    Mapping(CUDA, (("a", CUDA),)),
    Mapping(NEVER),
    Array(Kind.BOOL),
    Instance("torch.nn.Linear", (("in_features", Const(3)),)),
    Instance("torch.nn.Linear"),
    Instance("torch.nn.ModuleList", ()),
    Class("a.B"),
    Name("torch.relu"),
    Function("a", "f", 1, 0),
    Partial(Name("torch.relu")),
)
PAIRS = list(itertools.product(SAMPLES, repeat=2))


def test_join_is_idempotent() -> None:
    assert [show(value) for value in SAMPLES if join(value, value) != value] == []


def test_join_forgets_the_order() -> None:
    different = [(show(a), show(b)) for a, b in PAIRS if show(join(a, b)) != show(join(b, a))]
    assert different == []


def test_never_is_the_bottom() -> None:
    assert [show(value) for value in SAMPLES if join(NEVER, value) != value or join(value, NEVER) != value] == []


def test_there_is_one_never_after_it_was_stored() -> None:
    """Summaries of calls are stored, and sent to other processes."""
    stored = pickle.loads(pickle.dumps(Sequence("list", NEVER)))
    assert stored.element is NEVER
    assert join(stored.element, UNKNOWN) is join(UNKNOWN, stored.element) is UNKNOWN


def test_something_unknown_is_one_of_the_alternatives() -> None:
    for value in SAMPLES:
        joined = join(UNKNOWN, value)
        assert joined.is_open and joined.tensor == value.tensor
        assert joined.is_unknown is all(member in (NONE, UNKNOWN) for member in value.members)


def test_anything_is_the_top_but_for_tensors() -> None:
    for value in SAMPLES:
        joined = join(ANYTHING, value)
        # A tensor in a batch is one among other things.
        tensor = next((member for member in value.members if isinstance(member, Tensor)), None)
        assert joined == (ANYTHING if tensor is None else Union((tensor, ANYTHING)))


def test_join_covers_both() -> None:
    """What was joined in changes nothing when it is joined in again."""
    for a, b in itertools.product([value for value in SAMPLES if value is not UNKNOWN], repeat=2):
        joined = join(a, b)
        assert join(joined, b) == joined, (show(a), show(b))
        assert show(join(joined, a)) == show(joined), (show(a), show(b))


def test_joins_are_values_that_can_be_kept() -> None:
    for a, b in PAIRS:
        joined = join(a, b)
        assert hash(joined) == hash(join(a, b)) and joined == join(a, b)
        assert not any(isinstance(member, Union) for member in joined.members)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([CUDA, CUDA], "cuda float 2"),
        ([CUDA, CPU], "tensor float 2"),
        ([CUDA, MODEL], "model float 2"),
        ([CUDA, CUDA.with_(kind=Kind.BOOL)], "cuda 2"),
        ([CUDA, CUDA.with_(rank=1)], "cuda float"),
        ([CUDA.with_(leaf="buffer"), CUDA], "cuda float 2"),
        ([CPU.with_(pinned=True), CPU], "cpu float 2"),
        ([Tensor(place="d:1"), Tensor(place="d:1")], "tensor@d"),
        ([Tensor(place="d:1"), Tensor(place="e:2")], "tensor"),
        ([Const(1), Const(2)], "int"),
        ([Const(1), Const(1)], "1"),
        ([Const(1), Const(2.0)], "1 | 2.0"),
        ([Const(1), Scalar("int")], "int"),
        ([Const(1), NONE], "1 | None"),
        ([Const(True), Const(1)], "1 | True"),
        ([Const("cuda"), Const("cpu")], "'cuda'"),
        ([DeviceValue(Device.CPU), DeviceValue(Device.CUDA)], "device cuda"),
        ([DeviceValue(Device.CPU), DeviceValue(Device.MODEL)], "device ?"),
        ([CUDA, NONE, Scalar("int")], "cuda float 2 | int | None"),
        ([Sequence("list", CUDA), Sequence("list", CPU)], "list[tensor float 2]"),
        ([Sequence("list", CUDA), Sequence("tuple", CUDA)], "list[cuda float 2] | tuple[cuda float 2]"),
        ([Sequence("tuple", CPU, (CPU, NONE)), Sequence("tuple", CPU, (CUDA, NONE))], "(tensor float 2, None)"),
        ([Sequence("tuple", CPU, (CPU,)), Sequence("tuple", CPU, (CPU, CPU))], "tuple[cpu float 2]"),
        ([Mapping(CUDA, (("a", CUDA),)), Mapping(CPU, (("a", CPU),))], "{a: tensor float 2}"),
        ([Mapping(NEVER, (("a", CUDA),)), Mapping(NEVER)], "{a: cuda float 2}"),
        ([Dtype("float16"), Dtype("float32")], "dtype (float)"),
        ([Dtype("float16"), Dtype("int64")], "dtype"),
        ([Array(Kind.BOOL), Array(Kind.INT)], "array"),
        ([Instance("a.B", (("n", Const(1)),)), Instance("a.B", (("n", Const(2)),))], "B(n=int)"),
        ([Instance("a.B", (("n", Const(1)),)), Instance("a.B", (("m", Const(2)),))], "B"),
        ([Instance("a.B"), Instance("a.C")], "B | C"),
        ([Name("torch.relu"), Name("torch.tanh")], "torch.relu | torch.tanh"),
        ([Const(str(n)) for n in range(3)], "str"),
        ([Instance(f"a.C{n}") for n in range(20)], "?"),
        ([CUDA, *(Instance(f"a.C{n}") for n in range(20))], "cuda float 2 | ?"),
        ([], "never"),
    ],
)
def test_unions(values: list[Value], expected: str) -> None:
    assert show(union(values)) == expected


def test_joined_objects_keep_a_common_origin() -> None:
    one, other = Origin("a", 1, 0), Origin("a", 2, 0)
    assert join(Instance("a.B", (), one), Instance("a.B", (), one)) == Instance("a.B", (), one)
    assert join(Instance("a.B", (), one), Instance("a.B", (), other)) == Instance("a.B", (), None)


def test_widening_ends_values_that_grow() -> None:
    value: Value = CUDA
    seen = set()
    for _ in range(50):
        value = widen(Sequence("list", value, (value, value)))
        seen.add(value)
    assert len(seen) < 8

    value = Instance("a.B", ())
    for _ in range(50):
        value = widen(Instance("a.B", (("inner", value),)))
    assert len(repr(value)) < 1000


def test_widening_keeps_what_is_small() -> None:
    for value in SAMPLES:
        assert widen(value) == value
        assert widen(widen(value)) == widen(value)


def test_widening_cuts_wide_values() -> None:
    wide = Sequence("list", Scalar("int"), tuple(Const(n) for n in range(100)))
    assert show(widen(wide)) == "list[int]"
    assert len(widen(Mapping(CUDA, tuple((str(n), CUDA) for n in range(100)))).items) <= 16  # type: ignore[attr-defined]


def test_keys_that_are_cut_are_among_the_elements() -> None:
    wide = widen(Mapping(NEVER, (*((str(n), Scalar("int")) for n in range(20)), ("weight", CUDA))))
    # Among numbers, a tensor is only likely.
    assert isinstance(wide, Mapping) and wide.get("weight").tensor == CUDA.with_(evidence=Evidence.USE)
    assert wide.get("3").tensor is None
    tensors = widen(Mapping(NEVER, tuple((str(n), CUDA) for n in range(20))))
    assert isinstance(tensors, Mapping) and tensors.get("19") == CUDA

    deep = widen(Mapping(NEVER, (("weight", CUDA), ("bias", NONE))), 0)
    assert isinstance(deep, Mapping) and deep.get("weight") == UNKNOWN
    assert widen(Mapping(NEVER, (("weight", CUDA),)), 0) == Mapping(CUDA)

    filled = with_key(Mapping(NEVER), "weight", CUDA)
    for n in range(MOST_KEYS):
        filled = with_key(filled, str(n), CPU)
    assert len(filled.items) == MOST_KEYS and filled.get("weight") == CUDA and filled.get("1") == CPU
    assert with_key(filled, "1", MODEL).get("1") == MODEL


def _holders(inner: Value) -> list[Value]:
    return [
        Sequence("list", inner),
        Sequence("tuple", inner, (inner, inner)),
        Sequence("list", join(inner, CUDA), (CUDA, inner, inner)),
        Mapping(inner),
        Mapping(NEVER, (("a", inner), ("b", inner))),
        Instance("a.B", (("inner", inner), ("other", inner))),
        Partial(Name("torch.relu"), (inner,), (("out", inner),)),
        Partial(inner),
        Union((Mapping(inner), Sequence("list", inner))),
        Sequence("list", Name("builtins.list.append", inner)),
        Sequence("list", Function("m", "f", 1, 0, receiver=inner)),
        Sequence("list", Super("a.B", inner)),
    ]


@pytest.mark.parametrize("kind", range(len(_holders(CUDA))))
def test_values_that_hold_themselves_stay_small(kind: int) -> None:
    one: Value = Sequence("list", CUDA)
    other: Value = Sequence("list", CPU)
    for _ in range(60):
        one, other = _holders(one)[kind], _holders(other)[kind]
        assert one.weight <= 2 * HEAVIEST
        joined = join(one, other)
        assert joined == join(one, other) and hash(widen(joined)) == hash(widen(joined))
        assert len(describe(joined)) < 100_000


def test_a_value_that_is_cut_tells_nothing_wrong() -> None:
    wide: Value = Sequence("list", CUDA, (CUDA,) * 60)
    for _ in range(3):
        wide = Mapping(wide, tuple((str(n), wide) for n in range(60)))
    assert wide == Mapping(UNKNOWN) and wide.weight == 3
    deep: Value = Instance("a.B", ())
    while deep.weight < HEAVIEST // 2:
        deep = Instance("a.B", (("inner", deep),))
    assert Instance("a.C", (("inner", deep), ("other", deep))) == Instance("a.C")
    assert Sequence("list", CUDA, (deep, deep)) == Sequence("list", CUDA)
    assert Sequence("list", deep, (deep,)) == Sequence("list", deep)
    assert Partial(deep, (deep,)) == Partial(UNKNOWN)


@pytest.mark.parametrize(
    ("operands", "device"),
    [
        ([Device.CPU, Device.CUDA], Device.CUDA),
        ([Device.CUDA, Device.CPU], Device.CUDA),
        ([Device.CPU, Device.CPU], Device.CPU),
        ([Device.CPU, Device.MODEL], Device.MODEL),
        ([Device.CPU, Device.UNKNOWN], Device.UNKNOWN),
        ([Device.CALLER, Device.MODEL], Device.MODEL),
        ([Device.UNKNOWN, Device.CUDA], Device.CUDA),
    ],
)
def test_operand_in_charge(operands: list[Device], device: Device) -> None:
    charge = operand_in_charge(map(Tensor, operands))
    assert charge is not None and charge.device is device


def test_nothing_is_in_charge_of_nothing() -> None:
    assert operand_in_charge([]) is None


@pytest.mark.parametrize(
    ("tensor", "destination", "same"),
    [
        (CUDA, DeviceValue(Device.CUDA), True),
        (CUDA, CUDA, True),
        (MODEL, DeviceValue(Device.MODEL), True),
        (CPU, DeviceValue(Device.CUDA), False),
        (Tensor(Device.CALLER), DeviceValue(Device.CALLER), False),
        (Tensor(Device.CALLER, place="x:1"), DeviceValue(Device.CALLER, "x:1"), True),
        (Tensor(place="x:1"), DeviceValue(place="y:2"), False),
        (Tensor(), DeviceValue(), False),
        (CUDA, UNKNOWN, False),
    ],
)
def test_same_place(tensor: Tensor, destination: Value, same: bool) -> None:
    assert same_place(tensor, destination) is same


def test_questions() -> None:
    assert without(join(CUDA, NONE), NONE) == CUDA and without(NONE, NONE) is NEVER
    assert scalar_type(Const(1)) == "int" and scalar_type(NONE) == "None" and scalar_type(CUDA) == ""
    assert Const(1) != Const(True) and Const(1) != Const(1.0) and Const(0) != Const(False)
    assert CUDA.off_host and Tensor().off_host and not CPU.off_host
    assert Mapping(CUDA, (("a", CPU),)).get("a") == CPU and Mapping(CUDA).get("a") == CUDA

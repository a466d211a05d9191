"""Values in words."""

from __future__ import annotations

import pytest

from perflint.semantics.explain.describe import describe
from perflint.semantics.lattice import union
from perflint.semantics.values import (
    NEVER,
    NONE,
    PROMISE,
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
    Value,
)

HOST = Tensor(Device.CPU)
CUDA = Tensor(Device.CUDA)
MODEL = Tensor(Device.MODEL, Kind.FLOAT)
CALLER = Tensor(Device.CALLER, evidence=Evidence.ANNOTATION)
INT, FLOAT, STR = Scalar("int"), Scalar("float"), Scalar("str")
HERE, THERE = Origin("here", 12, 4), Origin("package.there", 7, 0)

VALUES: list[tuple[Value, str]] = [
    # Tensors
    (CUDA, "tensor, on the device (certain)"),
    (Tensor(Device.CUDA, Kind.FLOAT), "float tensor, on the device (certain)"),
    (Tensor(Device.CUDA, Kind.BOOL, 2), "bool tensor of rank 2, on the device (certain)"),
    (Tensor(Device.CPU, pinned=True), "tensor, on the CPU, pinned (certain)"),
    (Tensor(Device.CPU, evidence=Evidence.CONVENTION), "tensor, on the CPU (by convention)"),
    (Tensor(evidence=Evidence.USE), "tensor, on an unknown device (by use)"),
    (CALLER, "tensor, where the caller put it (likely)"),
    (Tensor(Device.MODEL, Kind.FLOAT, leaf="parameter"), "float parameter, on the module's device (certain)"),
    (Tensor(Device.MODEL, leaf="buffer"), "buffer, on the module's device (certain)"),
    (Tensor(Device.META), "tensor, on a device that is not CUDA's (certain)"),
    (Tensor(place="device:3"), "tensor, on `device` of line 3 (certain)"),
    (Tensor(Device.CALLER, place="x.device"), "tensor, on `x.device` (certain)"),
    (Tensor(Device.CUDA, place="device:3"), "tensor, on the device (certain)"),
    # Plain values
    (NONE, "None"),
    (Const(True), "True"),
    (Const(...), "..."),
    (Const(3), "int 3"),
    (Const(-0.5), "float -0.5"),
    (Const("cuda"), "str 'cuda'"),
    (Const("x" * 60), f"str '{'x' * 35}...'"),
    (INT, "int"),
    (Scalar("int", Const(16)), "int, 16 by default"),
    (Array(), "array on the CPU (NumPy or similar)"),
    (Array(Kind.BOOL), "bool array on the CPU (NumPy or similar)"),
    (Array(Kind.INT, 1), "int array of rank 1 on the CPU (NumPy or similar)"),
    (UNKNOWN, "unknown"),
    (NEVER, "no value at all"),
    # Devices and dtypes
    (DeviceValue(Device.CUDA), "torch.device (the device)"),
    (DeviceValue(Device.CPU), "torch.device (the CPU)"),
    (DeviceValue(), "torch.device (which one is unknown)"),
    (DeviceValue(Device.CALLER, "device:8"), "torch.device (`device` of line 8)"),
    (Dtype("bfloat16"), "dtype torch.bfloat16"),
    (Dtype(), "some dtype"),
    # Collections
    (Sequence("list", HOST), "list of CPU tensors"),
    (Sequence("list", Tensor(Device.CPU, Kind.INT)), "list of CPU int tensors"),
    (Sequence("list", CUDA), "list of device tensors"),
    (Sequence("list", MODEL), "list of float tensors on the module's device"),
    (Sequence("list", CALLER), "list of tensors where the caller put them"),
    (Sequence("list", Tensor()), "list of tensors"),
    (Sequence("list", INT, (INT, INT, INT)), "list of 3 ints"),
    (Sequence("tuple", UNKNOWN, (HOST, INT)), "tuple (CPU tensor, int)"),
    (Sequence("tuple", UNKNOWN, (Const(1), Const(2))), "tuple (1, 2)"),
    (Sequence("tuple", UNKNOWN, (INT, STR, INT, STR, INT)), "tuple (int, str, int, ...)"),
    (Sequence("tuple", UNKNOWN, (CALLER,)), "tuple (tensor where the caller put it)"),
    (Sequence("list", NEVER, ()), "empty list"),
    (Sequence("list", NEVER), "empty list"),
    (Sequence("list"), "list of unknown elements"),
    (Sequence("size", INT), "torch.Size of ints"),
    (Sequence("size", INT, (INT,) * 4), "torch.Size of 4 ints"),
    (Sequence("range", INT), "range of ints"),
    (Sequence("iterator", Sequence("tuple", UNKNOWN, (INT, HOST))), "iterator of tuples (int, CPU tensor)"),
    (Sequence("list", Sequence("list", FLOAT)), "list of lists of floats"),
    (Sequence("list", Instance("torch.nn.Linear")), "list of torch.nn.Linear objects"),
    (Sequence("list", Array()), "list of arrays"),
    (Sequence("list", union([INT, NONE])), "list of ints or None"),
    (
        Sequence("batch", Tensor(Device.CPU, evidence=Evidence.CONVENTION)),
        "batch: CPU tensor, or a tuple, dict or object of such (by convention)",
    ),
    (
        Sequence("batch", Tensor(Device.CPU, evidence=Evidence.CONVENTION, pinned=True)),
        "batch: CPU tensor, pinned, or a tuple, dict or object of such (by convention)",
    ),
    (Mapping(HOST), "dict of CPU tensors"),
    (Mapping(), "dict of unknown values"),
    (Mapping(NEVER), "empty dict"),
    (Mapping(UNKNOWN, (("x", HOST), ("n", INT))), "dict ('x': CPU tensor, 'n': int)"),
    # Objects and code
    (Instance("torch.nn.Module"), "some torch.nn.Module"),
    (Instance("torch.optim.Adam"), "object of torch.optim.Adam"),
    (Instance("torch.nn.Conv2d", (), HERE), "object of torch.nn.Conv2d made at line 12"),
    (Instance("torch.nn.Conv2d", (), THERE), "object of torch.nn.Conv2d made at line 7 of package.there"),
    (Instance("here.Net"), "object of Net"),
    (
        Instance("torch.nn.Conv2d", (("in_channels", Const(3)), ("bias", Const(False)), ("stride", INT)), HERE),
        "object of torch.nn.Conv2d made at line 12 with in_channels=3, bias=False",
    ),
    (Class("here.Net"), "class Net"),
    (Class("package.there.Net"), "class package.there.Net"),
    (Name("torch.nn.Conv2d"), "class torch.nn.Conv2d"),
    (Name("torch.nonzero"), "torch.nonzero"),
    (Name("builtins.len"), "builtin len"),
    (Name("torch.Tensor.item", CUDA), "method torch.Tensor.item"),
    (Name("builtins.list.append", Sequence("list")), "method list.append"),
    (Function("here", "helper", 4, 0), "function helper at line 4"),
    (Function("package.there", "helper", 4, 0), "function helper at line 4 of package.there"),
    (Function("here", "Net.forward", 9, 4, "here.Net"), "method Net.forward at line 9"),
    (Function("here", "<lambda>", 5, 0), "lambda at line 5"),
    (Function("here", "f.<lambda>", 5, 0), "lambda at line 5"),
    (Partial(Name("torch.zeros")), "functools.partial of torch.zeros"),
    (Partial(PROMISE, (Tensor(Device.CALLER),)), "a function that returns: tensor where the caller put it"),
    (TypeForm(Sequence("list", STR)), "a type: list of strs"),
    (Super("here.Net", Instance("here.Net")), "super() of Net"),
    # One of several
    (union([CUDA, NONE]), "tensor, on the device (certain), or None"),
    (union([NONE, INT]), "int or None"),
    (union([UNKNOWN, CUDA]), "tensor, on the device (certain), or something unknown"),
    (union([Sequence("list", INT), INT, NONE]), "list of ints, int or None"),
    (union([Const("a"), Const(1)]), "int 1 or str 'a'"),
]


@pytest.mark.parametrize(("value", "words"), VALUES, ids=[words[:60] for _, words in VALUES])
def test_words(value: Value, words: str) -> None:
    assert describe(value, "here") == words


def test_every_kind_of_value_has_words() -> None:
    kinds = {kind.__name__ for kind in Value.__subclasses__()}
    assert kinds == {type(value).__name__ for value, _ in VALUES}

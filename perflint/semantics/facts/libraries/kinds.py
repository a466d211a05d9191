"""The words that the files of the libraries use for results and attributes, with their meaning."""

from __future__ import annotations

from collections.abc import Callable

from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.values import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    UNKNOWN,
    Array,
    Device,
    DeviceValue,
    Instance,
    Kind,
    Mapping,
    Sequence,
    Tensor,
    Value,
)

CODE = "code"
"""A result that Python code computes."""


def _follows(arguments: Arguments) -> Value:
    return _as_first(arguments, same_kind=True)


def _beside(arguments: Arguments) -> Value:
    return _as_first(arguments, same_kind=False)


def _gathered(value: Value) -> Value:
    """A tensor of all processes: one without dimensions gets one if there are several processes."""
    return value.with_(rank=None) if isinstance(value, Tensor) and value.rank == 0 else value


def _as_first(arguments: Arguments, *, same_kind: bool) -> Value:
    """A tensor on the device of the first argument, which may be a list of tensors."""
    first = arguments.at(0)
    tensor = first.tensor
    if tensor is None and isinstance(first, Sequence):
        tensor = first.element.tensor
    if tensor is None:
        return Tensor()
    return Tensor(tensor.device, tensor.kind if same_kind else Kind.UNKNOWN, evidence=tensor.evidence)


RESULTS: dict[str, Callable[[Arguments], Value]] = {
    "array": lambda arguments: Array(),
    "image": lambda arguments: Array(is_image=True),
    "follow": _follows,
    "beside": _beside,
    "host": lambda arguments: Tensor(Device.CPU),
    "first": lambda arguments: arguments.at(0),
    "gathered": lambda arguments: _gathered(arguments.at(0)),
    "float": lambda arguments: FLOAT,
    "int": lambda arguments: INT,
    "str": lambda arguments: STR,
    "bool": lambda arguments: BOOL,
    "none": lambda arguments: NONE,
    "module": lambda arguments: Instance("torch.nn.Module"),
}
"""The results of functions and methods: `follow` is a tensor on the device of the first argument and of its kind,
`beside` one of another kind, `host` one on the CPU, `first` the first argument, `gathered` it of all processes."""

_PARAMETER = Tensor(Device.MODEL, Kind.FLOAT, leaf="parameter")

ATTRIBUTES: dict[str, Value] = {
    "bool": BOOL,
    "int": INT,
    "gpu": DeviceValue(Device.CUDA),
    "device of the model": DeviceValue(Device.MODEL),
    "groups of parameters": Sequence("list", Mapping(UNKNOWN, (("params", Sequence("list", _PARAMETER)),))),
    "states": Mapping(Mapping(UNKNOWN)),
}
"""The values of attributes."""

CLASSES = frozenset({"array", "image", "tensor", "namespace", "tensordict"})
"""The kinds of classes. An object of a namespace holds whatever was put into it."""

"""Tensors: the values of their attributes, and the results of their methods and of torch's functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from perflint.semantics.facts import arrays, ranks, torch_api
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.facts.devices import computed_near, operand_that_meets
from perflint.semantics.lattice import union
from perflint.semantics.values import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    UNKNOWN,
    Array,
    Const,
    Device,
    DeviceValue,
    Dtype,
    Evidence,
    Kind,
    Mapping,
    Name,
    Scalar,
    Sequence,
    Tensor,
    Union,
    Unknown,
    Value,
    scalar_type,
)

_PROPERTIES = frozenset(
    """T H mT mH data grad real imag shape dtype device is_cuda is_cpu is_sparse is_quantized is_meta is_leaf
    ndim requires_grad layout names itemsize nbytes grad_fn output_nr is_nested is_mps is_xla is_xpu""".split()
)


_OF_DICTS = frozenset({"items", "keys", "values", "get", "pop", "update"})


def attribute(tensor: Tensor, name: str) -> Value:
    """An attribute of a tensor; methods stay bound to it."""
    if name in _OF_DICTS and tensor.evidence <= Evidence.CONVENTION:
        # A part of a batch that turns out to be a dict.
        return Name(f"builtins.dict.{name}", Mapping(tensor))
    if name not in _PROPERTIES:
        public = torch_api.canonical(f"torch.Tensor.{name}")
        return Name(public, tensor) if public.rpartition(".")[2] in torch_api.tensor_methods() else UNKNOWN
    if name == "device":
        return DeviceValue(tensor.device, tensor.place)
    if name == "shape":
        size = Sequence("size", INT)
        return size if tensor.rank is None else Sequence("size", INT, (INT,) * tensor.rank)
    if name == "dtype":
        return Dtype("bool" if tensor.kind is Kind.BOOL else "", tensor.kind)
    if name in ("T", "H", "mT", "mH", "data", "grad", "real", "imag"):
        return tensor.with_(leaf="")
    if name in ("ndim", "itemsize", "nbytes", "output_nr"):
        return INT
    return BOOL if name.startswith("is_") or name == "requires_grad" else UNKNOWN


def method(name: str, receiver: Value, arguments: Arguments) -> Value:
    """The result of `receiver.name(…)`, `receiver` being a tensor or a batch of them."""
    if isinstance(receiver, Sequence):
        element = method(name, receiver.element, arguments)
        return Sequence(receiver.type, element)
    assert isinstance(receiver, Tensor)
    special = _METHODS.get(name)
    if special is not None:
        return special(receiver, arguments)
    return _by_facts(f"torch.Tensor.{name}", arguments, receiver)


def function(name: str, arguments: Arguments) -> Value | None:
    """The result of a function of torch; None when the facts do not know it."""
    special = _FUNCTIONS.get(name)
    if special is not None:
        return special(arguments)
    if torch_api.result(name) is None:
        return None
    return _by_facts(name, arguments, None)


def makes_tensors(name: str) -> bool:
    """True if a function of torch makes tensors on the default device."""
    facts = torch_api.result(name)
    is_factory = facts is not None and facts.device == "cpu-factory" and not name.startswith("torch.from")
    return is_factory or name in ("torch.tensor", "torch.as_tensor", "torch.asarray")


def default_device(value: Value) -> Device:
    """The device or dtype in the argument of `torch.set_default_device` or `set_default_tensor_type`."""
    on_gpu = Device.CUDA if _spelled(value).startswith("torch.cuda.") else Device.CPU
    return on_gpu if is_type(value) else device_of(value)


def is_type(value: Value) -> bool:
    """True for a type of tensors, `torch.cuda.FloatTensor`, and for its name in a text."""
    return _spelled(value).startswith("torch.")


def _spelled(value: Value) -> str:
    if isinstance(value, Name):
        return value.name
    return value.value if isinstance(value, Const) and isinstance(value.value, str) else ""


def _by_facts(name: str, arguments: Arguments, receiver: Tensor | None) -> Value:
    facts = torch_api.result(name)
    if facts is None:
        return UNKNOWN
    if facts.variants:
        facts = facts.variant(
            arguments.has, lambda position: arguments.at(position).tensor is not None, arguments.literal
        )
    operands = _operands(name, arguments, receiver)
    joined = arguments.get("tensors", 0) if name in _JOINS else None
    if isinstance(joined, Sequence) and joined.items:
        parts = [item.tensor for item in joined.items if item.tensor is not None]
        host = operand_that_meets(parts) if len(parts) == len(joined.items) else None
        if host is not None and host.device is Device.CPU:
            operands = [operand.with_(device=Device.CPU, place="") for operand in operands]
    return _typed(facts, arguments, operands)


_JOINS = frozenset(f"torch.{name}" for name in ("cat", "concat", "concatenate", "hstack", "vstack", "dstack", "stack"))
"""They raise where their parts are on two devices."""


def _typed(facts: torch_api.Result, arguments: Arguments, operands: list[Tensor]) -> Value:
    kind = facts.kind
    if kind in ("tensor", "self"):
        return _tensor(facts, facts.dtype, arguments, operands)
    if kind.startswith("tensors"):
        dtypes = facts.dtype.split(",")
        if facts.count is None:
            return Sequence("tuple", _tensor(facts, dtypes[0], arguments, operands))
        dtypes += [dtypes[-1]] * (facts.count - len(dtypes))
        items = tuple(_tensor(facts, dtype, arguments, operands) for dtype in dtypes[: facts.count])
        return Sequence("tuple", union(items), items)
    return _PLAIN.get(kind, UNKNOWN)


_PLAIN: dict[str, Value] = {
    "int": INT,
    "float": FLOAT,
    "bool": BOOL,
    "scalar": FLOAT,
    "size": Sequence("size", INT),
    "dtype": Dtype(),
    "device": DeviceValue(),
    "str": STR,
    "list": Sequence("list", FLOAT),
    "none": NONE,
    "array": Array(),
}


def _operands(name: str, arguments: Arguments, receiver: Tensor | None) -> list[Tensor]:
    """The tensors that a function computes with, without sizes, dimensions and counts that are tensors."""
    found = [] if receiver is None else [receiver]
    for value in _given_operands(torch_api.operands(name), arguments):
        tensor = value.tensor
        if tensor is None and isinstance(value, Sequence):
            tensor = value.element.tensor
        if tensor is not None:
            found.append(tensor)
    return found


def _given_operands(known: torch_api.Operands | None, arguments: Arguments) -> Iterable[Value]:
    if known is None:
        return arguments.values()
    by_position = [value for position, value in enumerate(arguments.positional) if position in known.positions]
    return [*by_position, *[value for name, value in arguments.keywords if name in known.names or name == "out"]]


def _tensor(facts: torch_api.Result, dtype: str, arguments: Arguments, operands: list[Tensor]) -> Tensor:
    device, place = _device(facts.device, arguments, operands)
    return Tensor(
        device=device,
        place=place,
        kind=_kind(dtype, arguments, operands),
        rank=ranks.of_result(facts, arguments, operands),
        evidence=max((tensor.evidence for tensor in operands), default=Evidence.CERTAIN)
        if facts.device != "cpu-factory"
        else Evidence.CERTAIN,
        pinned=arguments.keyword("pin_memory") == Const(True) and device is Device.CPU,
    )


def _device(rule: str, arguments: Arguments, operands: list[Tensor]) -> tuple[Device, str]:
    given = arguments.keyword("device")
    if rule not in ("host", "device", "model") and given is not None and given != NONE:
        return device_of(given), place_of(given)
    if rule == "cpu-factory":
        return Device.UNKNOWN if arguments.unpacked and not arguments.names_all else Device.CPU, ""
    if rule == "host":
        return Device.CPU, ""
    if rule == "device":
        return Device.CUDA, ""
    if rule == "like" and operands:
        return operands[0].device, operands[0].place
    charge = operand_that_meets(operands)
    if rule == "model" and (charge is None or charge.device is Device.UNKNOWN):
        return Device.MODEL, ""
    return (computed_near(arguments.values()), "") if charge is None else (charge.device, charge.place)


def place_of(value: Value) -> str:
    """Which of the unknown devices a `device=` argument means."""
    places = {getattr(member, "place", "") for member in value.members if member != NONE}
    return places.pop() if len(places) == 1 else ""


def as_loss(value: Value) -> Value:
    """The tensor that is backpropagated: on the model's device, if nothing else is known, as after `.cpu()`."""
    if isinstance(value, Tensor) and value.device is Device.UNKNOWN:
        return value.with_(device=Device.MODEL, place="")
    if isinstance(value, Unknown):
        device = value.near if value.near in (Device.CPU, Device.CUDA) else Device.MODEL
        return Tensor(device, Kind.FLOAT, 0, evidence=Evidence.USE)
    if isinstance(value, Union):
        return union(map(as_loss, value.members))
    return value


def device_of(value: Value) -> Device:
    """The device that a `device=` argument means."""
    if isinstance(value, Union):
        known = {device_of(member) for member in value.members if member != NONE}
        if known == {Device.CALLER, Device.UNKNOWN} and all(map(_names_device, value.members)):
            # `device: torch.device | str`: the caller's, however it is named.
            return Device.CALLER
        return known.pop() if len(known) == 1 else Device.UNKNOWN
    if isinstance(value, DeviceValue):
        return value.device
    if isinstance(value, Const):
        if isinstance(value.value, str):
            return _NAMED.get(value.value.split(":", 1)[0], Device.UNKNOWN)
        return Device.CUDA if type(value.value) is int else Device.UNKNOWN
    if isinstance(value, Scalar):
        # A device index, as in `model.to(local_rank)`; or a default that is a GPU.
        if value.type == "int" or (value.default is not None and device_of(value.default) is Device.CUDA):
            return Device.CUDA
        return Device.CALLER if value.default is None else Device.UNKNOWN
    # The device comes from other code, which chooses it.
    return Device.CALLER if isinstance(value, (Unknown, Name)) else Device.UNKNOWN


def _names_device(value: Value) -> bool:
    return isinstance(value, DeviceValue) or value == NONE or scalar_type(value) == "str" or _is_elsewhere(value)


def _may_place(value: Value) -> bool:
    return isinstance(value, DeviceValue) or scalar_type(value) in ("str", "int") or _is_elsewhere(value)


def _is_elsewhere(value: Value) -> bool:
    return isinstance(value, Name) and "device" in value.name.rpartition(".")[2].lower()


def _is_dtype(name: Name) -> bool:
    """True if something outside is called as dtypes are: `settings.DTYPE`, `library.float8`."""
    return bool(re.search("type|float|int|bool|half|double|long", name.name.rpartition(".")[2].lower()))


_NAMED = {
    "cpu": Device.CPU,
    "cuda": Device.CUDA,
    **dict.fromkeys("meta mps xpu npu mlu musa hpu xla".split(), Device.META),
}


def _kind(rule: str, arguments: Arguments, operands: list[Tensor]) -> Kind:
    given = arguments.keyword("dtype")
    if given is not None and given != NONE:
        return given.kind if isinstance(given, Dtype) else Kind.UNKNOWN
    if rule in ("bool", "int", "float"):
        return Kind(rule)
    if rule in ("same", "arith") and operands:
        kind = operands[0].kind
        return Kind.INT if rule == "arith" and kind is Kind.BOOL else kind
    if rule == "scalars":
        named = (value for name, value in arguments.keywords if name in ("fill_value", "start", "end", "step"))
        return _kind_of_numbers(v for v in (*arguments.positional, *named) if not isinstance(v, Sequence))
    if rule == "promote" and operands:
        kinds = {tensor.kind for tensor in operands}
        for kind in (Kind.FLOAT, Kind.UNKNOWN, Kind.INT):
            if kind in kinds:
                return kind
        return Kind.BOOL
    return Kind.UNKNOWN


def _kind_of_numbers(values: Iterable[Value]) -> Kind:
    """The kind of a tensor that is made of numbers."""
    types = {scalar_type(member) for value in values for member in value.members}
    if "float" in types:
        return Kind.FLOAT
    if not types <= {"int", "bool"} or not types:
        return Kind.UNKNOWN
    return Kind.INT if "int" in types else Kind.BOOL


# Methods that the facts cannot describe


def _to(tensor: Tensor, arguments: Arguments) -> Value:
    device, kind, place, moved = tensor.device, tensor.kind, tensor.place, False
    for value in arguments.values():
        for member in value.members:
            if isinstance(member, Dtype):
                kind = member.kind
            elif isinstance(member, Tensor):
                device, kind, place, moved = member.device, member.kind, member.place, True
        named = [member for member in value.members if _may_place(member)]
        if named:
            device, moved = device_of(union(named)), True
            place = place_of(named[0]) if len(named) == 1 else ""
    first = arguments.at(0)
    unknown = first.is_unknown or (isinstance(first, Name) and not moved and not _is_dtype(first))
    if unknown and arguments.positional and arguments.keyword("device") is None:
        # A device or a dtype: nothing is known of the place any more.
        device = Device.UNKNOWN if tensor.device is Device.CPU else tensor.device
    keyword = arguments.keyword("device")
    if keyword is not None and keyword.is_unknown:
        device, place = Device.UNKNOWN, ""
    pinned = tensor.pinned and device is tensor.device
    if moved and device in (Device.CUDA, Device.MODEL, Device.CALLER):
        # A value that is moved is certainly a tensor.
        evidence = max(tensor.evidence, Evidence.CONVENTION)
    else:
        evidence = tensor.evidence
    return tensor.with_(device=device, kind=kind, place=place, leaf="", pinned=pinned, evidence=evidence)


def _cpu(tensor: Tensor, arguments: Arguments) -> Value:
    return tensor.with_(device=Device.CPU, leaf="", place="")


def _cuda(tensor: Tensor, arguments: Arguments) -> Value:
    return tensor.with_(device=Device.CUDA, leaf="", place="", pinned=False)


def _item(tensor: Tensor, arguments: Arguments) -> Value:
    return Scalar({Kind.BOOL: "bool", Kind.INT: "int"}.get(tensor.kind, "float"))


def _tolist(tensor: Tensor, arguments: Arguments) -> Value:
    return ranks.nested_list(_item(tensor, arguments), tensor.rank)


def _numpy(tensor: Tensor, arguments: Arguments) -> Value:
    return Array(tensor.kind, tensor.rank)


def _size(tensor: Tensor, arguments: Arguments) -> Value:
    if arguments.has("dim", 0):
        return INT
    return attribute(tensor, "shape")


def _view(tensor: Tensor, arguments: Arguments) -> Value:
    value = arguments.get("dtype", 0)
    if isinstance(value, Dtype):
        return tensor.with_(kind=value.kind, leaf="")
    return _by_facts("torch.Tensor.view", arguments, tensor)


def _type(tensor: Tensor, arguments: Arguments) -> Value:
    value = arguments.get("dtype", 0)
    if value is None:
        return STR
    if isinstance(value, Dtype):
        return tensor.with_(kind=value.kind, leaf="")
    name = value.name if isinstance(value, Name) else value.value if isinstance(value, Const) else None
    if isinstance(name, str) and name.startswith("torch.") and name.endswith("Tensor"):
        device = Device.CUDA if name.startswith("torch.cuda.") else Device.CPU
        kind = _TYPES.get(name.rpartition(".")[2], Kind.UNKNOWN)
        return tensor.with_(kind=kind, leaf="", device=device, place="")
    return tensor.with_(kind=Kind.UNKNOWN, leaf="")


_TYPES = {
    "BoolTensor": Kind.BOOL,
    "LongTensor": Kind.INT,
    "IntTensor": Kind.INT,
    "ByteTensor": Kind.INT,
    "FloatTensor": Kind.FLOAT,
    "HalfTensor": Kind.FLOAT,
    "DoubleTensor": Kind.FLOAT,
    "Tensor": Kind.FLOAT,
}


def _like(tensor: Tensor, arguments: Arguments) -> Value:
    other = arguments.at(0).tensor
    if other is None:
        return tensor.with_(device=Device.UNKNOWN, kind=Kind.UNKNOWN, leaf="", place="")
    return tensor.with_(device=other.device, kind=other.kind, leaf="", place=other.place)


def _pin(tensor: Tensor, arguments: Arguments) -> Value:
    return tensor.with_(pinned=True, leaf="")


_METHODS: dict[str, Callable[[Tensor, Arguments], Value]] = {
    "to": _to,
    "cpu": _cpu,
    "cuda": _cuda,
    "item": _item,
    "tolist": _tolist,
    "numpy": _numpy,
    "__array__": _numpy,
    "size": _size,
    "type": _type,
    "view": _view,
    "type_as": _like,
    "pin_memory": _pin,
}


def _device_constructor(arguments: Arguments) -> Value:
    return DeviceValue(device_of(arguments.get("type", 0) or UNKNOWN))


def _tensor_constructor(arguments: Arguments) -> Value:
    data = arguments.get("data", 0) or UNKNOWN
    given = arguments.keyword("device")
    if given is not None and given != NONE:
        device = device_of(given)
    else:
        device = Device.UNKNOWN if arguments.unpacked and not arguments.names_all else Device.CPU
    place = "" if given is None else place_of(given)
    return Tensor(device, _literal_kind(data, arguments), arrays.rank_of(data), place=place)


def _as_tensor(arguments: Arguments) -> Value:
    data = (arguments.get("data", 0) or UNKNOWN).tensor
    made = _tensor_constructor(arguments)
    assert isinstance(made, Tensor)
    if data is None:
        return made
    given = arguments.keyword("device")
    moved = given is not None and given != NONE
    return data.with_(device=made.device, leaf="", place=made.place) if moved else data.with_(leaf="")


def _literal_kind(data: Value, arguments: Arguments) -> Kind:
    given = arguments.get("dtype", None)
    if given is not None and given != NONE:
        return given.kind if isinstance(given, Dtype) else Kind.UNKNOWN
    return arrays.kind_of(data)


def _from_array(arguments: Arguments) -> Value:
    data = arguments.get("ndarray", 0) or UNKNOWN
    return Tensor(Device.CPU, arrays.kind_of(data), arrays.rank_of(data))


def _where(arguments: Arguments) -> Value:
    if arguments.has("input", 1) or arguments.unpacked:
        return _by_facts("torch.where", arguments, None)
    condition = arguments.at(0).tensor
    index = Tensor(device=condition.device if condition is not None else Device.UNKNOWN, kind=Kind.INT, rank=1)
    return Sequence("tuple", index)


def _parameter(arguments: Arguments) -> Tensor:
    data = arguments.get("data", 0)
    tensor = data.tensor if data is not None else None
    kind = tensor.kind if tensor is not None else Kind.FLOAT
    rank = tensor.rank if tensor is not None else None
    return Tensor(Device.MODEL, kind, rank, leaf="parameter")


def _legacy_tensor(device: Device) -> Tensor:
    return Tensor(device, Kind.FLOAT)


_FUNCTIONS: dict[str, Callable[[Arguments], Value]] = {
    "torch.device": _device_constructor,
    "torch.tensor": _tensor_constructor,
    "torch.asarray": _as_tensor,
    "torch.as_tensor": _as_tensor,
    "torch.from_numpy": _from_array,
    "torch.where": _where,
    "torch.nn.Parameter": _parameter,
    "torch.nn.Buffer": lambda arguments: _parameter(arguments).with_(leaf="buffer"),
    "torch.Tensor": lambda arguments: _legacy_tensor(device_of(arguments.keyword("device") or Const("cpu"))),
    "torch.FloatTensor": lambda arguments: _legacy_tensor(Device.CPU),
    "torch.cuda.FloatTensor": lambda arguments: _legacy_tensor(Device.CUDA),
    "torch.cuda.LongTensor": lambda arguments: Tensor(Device.CUDA, Kind.INT),
    "torch.LongTensor": lambda arguments: Tensor(Device.CPU, Kind.INT),
    "torch.BoolTensor": lambda arguments: Tensor(Device.CPU, Kind.BOOL),
    "torch.finfo": lambda arguments: UNKNOWN,
}

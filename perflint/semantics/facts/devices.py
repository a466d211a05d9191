"""The device of a result of several values, and whether two values are on one device."""

from __future__ import annotations

from collections.abc import Iterable

from perflint.semantics.values import (
    UNKNOWN,
    Const,
    Device,
    DeviceValue,
    Evidence,
    Name,
    Sequence,
    Tensor,
    Unknown,
    Value,
)


def names_gpu(value: Value) -> bool:
    """True if a text is the beginning of a GPU's name, as in `"cuda:" + str(rank)`: any of them will do."""
    return isinstance(value, Const) and isinstance(value.value, str) and value.value.startswith("cuda:")


def made_of(values: Iterable[Value]) -> Unknown:
    """The value returned by unknown code: assumed to be on the same device as its arguments."""
    near = Device.UNKNOWN
    for member in (member for value in values for member in value.members):
        device = _device_of(member)
        if device in (Device.CPU, Device.META):
            return UNKNOWN
        if device is not Device.UNKNOWN:
            near = Device.CALLER
    return UNKNOWN if near is Device.UNKNOWN else Unknown(near)


def computed_near(values: Iterable[Value]) -> Device:
    """The device of what torch computes of unknown values, which lie on one device."""
    given = tuple(values)
    on_cpu = any(isinstance(member, Unknown) and member.near is Device.CPU for each in given for member in each.members)
    return Device.CPU if on_cpu else made_of(given).near


def _device_of(value: Value) -> Device:
    if isinstance(value, (Tensor, DeviceValue)):
        return value.device
    if isinstance(value, Unknown):
        # Unknown code may move an object from the CPU.
        return Device.UNKNOWN if value.near is Device.CPU else value.near
    if isinstance(value, Sequence):
        return Device.UNKNOWN if value.element.tensor is None else value.element.tensor.device
    if isinstance(value, Name) and value.name.endswith(".cuda"):
        return Device.CUDA
    if isinstance(value, Const) and isinstance(value.value, str):
        return {"cpu": Device.CPU, "cuda": Device.CUDA}.get(value.value.partition(":")[0], Device.UNKNOWN)
    return Device.UNKNOWN


def operand_in_charge(operands: Iterable[Tensor]) -> Tensor | None:
    """The operand whose device the result of an operation lives on; None without operands.

    A CPU tensor in an operation with GPU tensors has no dimensions: the result is on the GPU.
    """
    charge: Tensor | None = None
    for tensor in operands:
        if charge is None or _RANK[tensor.device] > _RANK[charge.device]:
            charge = tensor
        elif tensor.device is charge.device and tensor.place != charge.place:
            charge = charge.with_(place="")
    return charge


def operand_that_meets(operands: Iterable[Tensor]) -> Tensor | None:
    """As `operand_in_charge`, for operations that raise where their operands are on two devices.

    A CPU tensor with dimensions decides the device of the others whose device is unknown.
    """
    given = tuple(operands)
    charge = operand_in_charge(given)
    if charge is not None and charge.device in (Device.UNKNOWN, Device.CALLER):
        for tensor in given:
            if tensor.device is Device.CPU and tensor.rank and tensor.evidence is Evidence.CERTAIN:
                return tensor
    return charge


_RANK = {Device.CPU: 0, Device.META: 1, Device.UNKNOWN: 2, Device.CALLER: 3, Device.MODEL: 4, Device.CUDA: 5}


def same_place(tensor: Tensor, destination: Value) -> bool:
    """True if a tensor is certainly where `destination`, a device or a tensor, says."""
    if not isinstance(destination, (DeviceValue, Tensor)) or destination.device is not tensor.device:
        return False
    if tensor.device in (Device.CPU, Device.CUDA, Device.MODEL):
        return True
    return bool(tensor.place) and tensor.place == destination.place

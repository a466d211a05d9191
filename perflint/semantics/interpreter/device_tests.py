"""The device of tensors behind tests of it: `x.is_cuda`, `x.device.type == "cpu"`, `str(x.device) == "cpu"`."""

from __future__ import annotations

import ast

from perflint.semantics.interpreter.frame import Frame, Names
from perflint.semantics.interpreter.narrowed import current, refine
from perflint.semantics.lattice import union
from perflint.semantics.structure import last_name
from perflint.semantics.values import Device, DeviceValue, Tensor, Union, Value


def narrow(frame: Frame, test: ast.Compare, names: Names, truth: bool) -> bool:
    """True if a test compares the kind of a device with a text. Its outcome has placed the device and its tensor."""
    operator, left, right = test.ops[0], test.left, test.comparators[0]
    if isinstance(operator, (ast.In, ast.NotIn)):
        device, kind = _device_shown(right), _kind(left)
    elif isinstance(operator, (ast.Eq, ast.NotEq)):
        device, kind = _device_shown(left), _kind(right)
    else:
        return False
    if device is None or not kind:
        return False
    holds = isinstance(operator, (ast.In, ast.Eq)) is truth
    if kind in ("cpu", "cuda") and (kind == "cuda" or holds):
        # Excluding the CPU, or a device other than CUDA, leaves several devices.
        place = Device.CUDA if (kind == "cuda") is holds else Device.CPU
        refine(frame, device, names, lambda value: value if value.tensor else _placed(value, place))
        if isinstance(device, ast.Attribute) and device.attr == "device":
            put(frame, device.value, names, place)
    return True


def _device_shown(node: ast.expr) -> ast.expr | None:
    """The device that an expression shows: `x.device` of itself, of `x.device.type` and of `str(x.device)`."""
    if isinstance(node, ast.Attribute):
        return node.value if node.attr == "type" else node if node.attr == "device" else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1:
        return _device_shown(node.args[0])
    return None


def _kind(node: ast.expr) -> str:
    """The kind of a device that `"cuda:0"` or `torch.device("cuda:0")` names; empty for other expressions."""
    if isinstance(node, ast.Call) and last_name(node) == "device" and len(node.args) == 1:
        node = node.args[0]
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return node.value.partition(":")[0] if is_text else ""  # type: ignore[attr-defined]


def put(frame: Frame, node: ast.expr, names: Names, device: Device) -> None:
    """Put a tensor on a device, and, if that is the CPU, all tensors that the function has from the same callers."""
    before = current(frame, node, names)
    refine(frame, node, names, lambda value: _placed(value, device))
    if device is not Device.CPU or not isinstance(before, Tensor) or before.device is not Device.CALLER:
        return
    for name, value in list(names.items()):
        if isinstance(value, Tensor) and value.device is Device.CALLER:
            names[name] = _placed(value, device)


def _placed(value: Value, device: Device) -> Value:
    """A value on one device if it could be on any."""
    if isinstance(value, Tensor) and value.device not in (Device.META, device):
        return value.with_(device=device, place="")
    if isinstance(value, DeviceValue):
        return DeviceValue(device)
    if isinstance(value, Union):
        return union(_placed(inner, device) for inner in value.members)
    return value

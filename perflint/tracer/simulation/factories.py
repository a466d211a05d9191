"""Functions that make tensors, on the device that the program names or on its default."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from perflint.tracer.simulation.devices import cpu, place_named
from perflint.tracer.simulation.marks import At, Replacements, asking, noted, pin, place_of, put, wait, wait_for_copy

Function = Callable[..., Any]
_FROM_DATA = frozenset({"tensor", "as_tensor", "asarray"})
_SPARSE = "sparse_"
_NESTING = 4
"""How deep lists of tensors are looked into."""


def replacements() -> Replacements:
    """Functions that create tensors, by their replacement. Needs torch."""
    import torch
    from torch.utils._device import _device_constructors

    found: Replacements = {}
    # Asked now, so that torch goes on to know its own functions as those that default devices are for.
    for original in _device_constructors():
        name = original.__name__
        make = _from_data if name in _FROM_DATA or name.startswith(_SPARSE) or name == "nested_tensor" else _made
        noted(found, original, functools.wraps(original)(make(original)))
    noted(found, torch.normal, functools.wraps(torch.normal)(_made(torch.normal)))
    for name in dir(torch):
        if name.endswith("_like"):
            original = getattr(torch, name)
            noted(found, original, functools.wraps(original)(like(original)))
    return found


def _made(original: Function) -> Function:
    """One whose tensor is filled where it is made."""

    def factory(*args: Any, **named: Any) -> Any:
        target = _target(named)
        with asking():
            if target is not At.GPU:
                return original(*args, **named)
            result = original(*args, **_at_home(named))
        put(result, At.GPU)
        return result

    return factory


def like(original: Function) -> Function:
    """A factory that creates a tensor on the device of another one, unless it gets a device."""

    def factory(*args: Any, **named: Any) -> Any:
        device = named.get("device")
        if device is None:
            return original(*args, **named)
        at = place_named(device)
        with asking():
            result = original(*args, **({**named, "device": cpu()} if at is not None else named))
        if at is not None:
            put(result, at)
        return result

    return factory


def _from_data(original: Function) -> Function:
    """One that copies what it is given."""
    import torch

    def factory(*args: Any, **named: Any) -> Any:
        data = args[0] if args else named.get("data", named.get("obj"))
        if len(args) > 2 and original.__name__ == "as_tensor":
            named = {"device": args[2], **named}
            args = args[:2]
        pinned = bool(named.pop("pin_memory", False))
        if pinned and _is_array(data):
            # It raises the error that it raises beside a GPU.
            return original(*args, pin_memory=True, **_at_home(named))
        if isinstance(data, torch.Tensor) and original.__name__ in _FROM_DATA:
            result = _from_tensor(original, data, args, named)
        else:
            result = _from_values(original, args, named)
        if pinned:
            pin(result)
        return result

    return factory


def _is_array(data: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(data, numpy.ndarray)


def _from_tensor(original: Function, data: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    target = _target(named)
    here = place_of(data)
    result = original(*args, **_at_home(named))
    if target is None or target is here:
        if result is not data:
            put(result, here)
        return result
    if result.untyped_storage()._cdata == data.untyped_storage()._cdata:
        result = result.clone()
    put(result, target)
    wait_for_copy(result)
    return result


def _from_values(original: Function, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    target = _target(named)
    on_gpu = [value for value in _tensors([*args, *named.values()], 0) if place_of(value) is At.GPU]
    scalars = original.__name__ in _FROM_DATA
    if scalars:
        for _ in on_gpu:
            wait()
    with asking():
        result = original(*args, **(_at_home(named) if target is not None else named))
    if target is not At.GPU and (scalars or not on_gpu):
        return result
    if original.__name__.startswith(_SPARSE) and on_gpu and _is_checked(original.__name__, args, named):
        wait()
    if scalars:
        # Arrays share their memory with the tensors that are made of them.
        result = result.detach().clone().requires_grad_(result.requires_grad)
    put(result, At.GPU)
    if not on_gpu or scalars:
        wait_for_copy(result)
    return result


def _is_checked(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """True if what a sparse tensor is made of is looked at: for its size, or whether it is right."""
    has_size = len(args) > 2 or named.get("size") is not None
    return name != "sparse_coo_tensor" or not has_size or bool(named.get("check_invariants"))


def _tensors(values: Any, depth: int) -> Iterator[Any]:
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)) and depth < _NESTING:
            yield from _tensors(value, depth + 1)


def _target(named: dict[str, Any]) -> At | None:
    """The place that the program gives a tensor; None if it gives none."""
    device = named.get("device")
    if device is None:
        device = _default_device()
    return None if device is None else place_named(device)


def _at_home(named: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the device that there really is, which also keeps a default device out."""
    return {**named, "device": cpu()} if _target(named) is not None else named


def _default_device() -> Any:
    """The device of `torch.set_default_device` or of the `with torch.device` around; None without one."""
    import torch
    from torch.utils._device import DeviceContext

    if not torch._C._len_torch_function_stack():
        return None
    overrides: Any = torch.overrides
    for mode in reversed(overrides._get_current_function_mode_stack()):
        if isinstance(mode, DeviceContext):
            return mode.device
    return None

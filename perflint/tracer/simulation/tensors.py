"""The device properties of tensors, and the methods that move them.

torch's own code in C++ goes on to see tensors on the CPU; its Python code and the program see where
they would be.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from perflint.tracer.simulation.devices import cpu, device_of, is_device, number, place_named
from perflint.tracer.simulation.factories import like
from perflint.tracer.simulation.marks import (
    At,
    asking,
    is_on_gpu,
    is_pinned,
    pin,
    place_of,
    put,
    silent,
    state,
    wait,
    wait_for_copy,
)

Method = Callable[..., Any]
_NOT_TO_NUMPY = (
    "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
)


def install() -> None:
    """Put the properties and methods in place. Needs torch."""
    import torch

    _install_properties(torch.Tensor)
    _install_constructor(torch.Tensor)
    methods: dict[str, Callable[[Method], Method]] = {
        "to": _to,
        "cuda": _cuda,
        "cpu": _cpu,
        "numpy": _numpy,
        "tolist": _tolist,
        "__repr__": _repr,
        "type": _type,
        "type_as": _type_as,
        "new_tensor": _new_tensor,
        "new": _new,
        "pin_memory": _pin_memory,
        "is_pinned": _is_pinned,
        "get_device": _get_device,
        "record_stream": _record_stream,
    }
    methods |= dict.fromkeys(("new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided"), like)
    for name, wrapped in methods.items():
        original = getattr(torch.Tensor, name)
        setattr(torch.Tensor, name, functools.wraps(original)(wrapped(original)))


def _install_properties(cls: Any) -> None:
    device, is_cpu, is_cuda = (getattr(cls, name).__get__ for name in ("device", "is_cpu", "is_cuda"))
    cls.device = property(lambda tensor: device_of(tensor, device(tensor)))
    cls.is_cpu = property(lambda tensor: is_cpu(tensor) and not is_on_gpu(tensor))
    cls.is_cuda = property(lambda tensor: is_cuda(tensor) or (is_cpu(tensor) and is_on_gpu(tensor)))


def _install_constructor(cls: Any) -> None:
    original = cls.__new__

    # torch's compiler has a stand-in for it, and compares the signatures: only this one goes with any.
    def new(*args: Any, **named: Any) -> Any:
        kind, *rest = args
        made = original(cls, *rest, **named)
        # The mode gives each new tensor a Python object, and torch's constructor refuses objects of other classes.
        return made if kind is cls else made.as_subclass(kind)

    cls.__new__ = new


def moved(copy: Method, tensor: Any, target: At, non_blocking: bool) -> Any:
    """A copy on the other device; it is a blocking copy unless `non_blocking` is set."""
    with asking():
        result = copy(tensor)
    put(result, target)
    if not non_blocking:
        wait_for_copy(tensor)
    elif target is At.HOST and str(result.layout) == "torch.strided":
        # torch pins what it makes for such a copy (`pin_out` of `_to_copy`).
        pin(result)
    return result


def _to(original: Method) -> Method:
    import torch

    getter = torch._C.TensorBase.device.__get__

    def real_device(tensor: Any) -> Any:
        # Modes and subclasses would ask for the device that the tensor would be on.
        with torch._C.DisableTorchFunction():
            return getter(tensor)

    def to(tensor: Any, *args: Any, **named: Any) -> Any:
        wanted, rest = _wanted(args, named)
        like = isinstance(wanted, torch.Tensor)
        target = place_of(wanted) if like else None if wanted is None else place_named(wanted)
        # Within `asking` it is a call below, as a mode of the program passes it on.
        is_inner = state.asks and target is At.HOST
        if target is None or is_inner or real_device(tensor).type != "cpu":
            return original(tensor, *args, **named)
        given = {"dtype": wanted.dtype} if like else {}
        given |= dict(zip(("non_blocking", "copy") if like else ("dtype", "non_blocking", "copy"), rest, strict=False))
        given |= {name: value for name, value in named.items() if name not in ("device", "other")}
        non_blocking = bool(given.pop("non_blocking", False))
        here = place_of(tensor)
        if here is target or target is At.EITHER:
            with asking():
                result = original(tensor, cpu(), **given)
            if result is not tensor:
                put(result, here)
            return result
        given["copy"] = True
        return moved(lambda tensor: original(tensor, cpu(), **given), tensor, target, non_blocking)

    return to


def _wanted(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """The device or tensor that `to` is given, and the positional arguments after it."""
    import torch

    if args and (is_device(args[0]) or isinstance(args[0], torch.Tensor)):
        return args[0], args[1:]
    if args and args[0] is None:
        return None, args[1:]
    found = named.get("device")
    return (named.get("other") if found is None else found), args


def _cuda(original: Method) -> Method:
    def cuda(tensor: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
        place_named("cuda" if device is None else device)
        if is_on_gpu(tensor):
            return tensor
        named = {} if memory_format is None else {"memory_format": memory_format}
        return moved(lambda tensor: copy(tensor, "cpu", copy=True, **named), tensor, At.GPU, non_blocking)

    copy = _original("to")
    return cuda


def _cpu(original: Method) -> Method:
    def cpu(tensor: Any, memory_format: Any = None) -> Any:
        named = {} if memory_format is None else {"memory_format": memory_format}
        if not is_on_gpu(tensor):
            return original(tensor, **named)
        return moved(lambda tensor: copy(tensor, "cpu", copy=True, **named), tensor, At.HOST, False)

    copy = _original("to")
    return cpu


def _numpy(original: Method) -> Method:
    def numpy(tensor: Any, *, force: bool = False) -> Any:
        if is_on_gpu(tensor):
            if not force:
                raise TypeError(_NOT_TO_NUMPY)
            wait_for_copy(tensor)
            tensor = tensor.detach().clone()
        return original(tensor, force=force)

    return numpy


def _tolist(original: Method) -> Method:
    def tolist(tensor: Any) -> Any:
        if is_on_gpu(tensor):
            wait_for_copy(tensor)
        return original(tensor)

    return tolist


def _repr(original: Method) -> Method:
    def repr_(tensor: Any, **named: Any) -> Any:
        if not is_on_gpu(tensor):
            return original(tensor, **named)
        wait()
        with silent():
            return original(tensor, **named)

    return repr_


def _type(original: Method) -> Method:
    import torch

    def type_(tensor: Any, dtype: Any = None, non_blocking: bool = False, **named: Any) -> Any:
        if dtype is None:
            name = original(tensor)
            return name.replace("torch.", "torch.cuda.", 1) if is_on_gpu(tensor) else name
        if isinstance(dtype, torch.dtype):
            return original(tensor, dtype, non_blocking, **named)
        name = dtype if isinstance(dtype, str) else f"{dtype.__module__}.{dtype.__name__}"
        target = At.GPU if ".cuda." in name else At.HOST
        kind = getattr(torch, name.rpartition(".")[2]).dtype
        if target is place_of(tensor):
            return original(tensor, kind, non_blocking, **named)
        return moved(lambda tensor: copy(tensor, "cpu", kind, copy=True), tensor, target, non_blocking)

    copy = _original("to")
    return type_


def _type_as(original: Method) -> Method:
    import torch

    def type_as(tensor: Any, other: Any) -> Any:
        return torch.Tensor.to(tensor, other)

    return type_as


def _new_tensor(original: Method) -> Method:
    import torch

    def new_tensor(tensor: Any, data: Any, *, dtype: Any = None, device: Any = None, **named: Any) -> Any:
        if dtype is None and not isinstance(data, torch.Tensor):
            dtype = original(tensor, data).dtype
        return torch.tensor(data, dtype=dtype, device=tensor.device if device is None else device, **named)

    return new_tensor


def _new(original: Method) -> Method:
    def new(tensor: Any, *args: Any, **named: Any) -> Any:
        named.pop("device", None)
        result = original(tensor, *args, **named)
        if is_on_gpu(tensor) and not is_on_gpu(result):
            if any(isinstance(value, (list, tuple)) for value in args):
                wait()
            put(result, At.GPU)
        return result

    return new


def _pin_memory(original: Method) -> Method:
    def pin_memory(tensor: Any, device: Any = None) -> Any:
        if is_on_gpu(tensor):
            raise RuntimeError(f"cannot pin '{tensor.type()}' only dense CPU tensors can be pinned")
        if tensor.is_pinned():
            return tensor
        with asking():
            result = tensor.detach().clone()
        pin(result)
        return result

    return pin_memory


def _is_pinned(original: Method) -> Method:
    def pinned(tensor: Any, device: Any = None) -> bool:
        return is_pinned(tensor)

    return pinned


def _record_stream(original: Method) -> Method:
    return lambda tensor, stream: None


def _get_device(original: Method) -> Method:
    def get_device(tensor: Any) -> int:
        return number() if is_on_gpu(tensor) else int(original(tensor))

    return get_device


def _original(name: str) -> Method:
    """torch's own method, below what is put on top of it."""
    import torch

    method: Method = getattr(torch._C.TensorBase, name)
    return method

"""Follows tensors through torch's operators, and sees which of them would wait."""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

from perflint.tracer.simulation.devices import cpu
from perflint.tracer.simulation.marks import At, is_pinned, note_list, pin, place_of, put, state, tensors_in, wait
from perflint.tracer.simulation.waits import waits

_FOLLOWS_FIRST = frozenset({"index", "_unsafe_index", "index_put", "_unsafe_index_put", "copy"})
"""Operators whose result is on the device of the first argument, wherever the others are."""
_HEAVY = frozenset(
    {"convolution", "convolution_backward", "mm", "addmm", "bmm", "baddbmm", "addbmm", "addmv", "mv", "dot"}
)
"""Operators that CPUs compute much faster in single than in half precision."""
_LACKING = "not implemented for"
"""In messages of kernels that the CPU has not got for a type that GPUs have them for."""


def make_mode() -> Any:
    """The mode that sees each operator of the threads that it is entered in. Needs torch."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    plain = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)

    mode: Any = TorchDispatchMode

    class Simulation(mode):  # type: ignore[misc]
        """Hides from torch that there is no GPU, as far as operators go."""

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # It would import the compiler, which takes seconds.
            return False

        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if any(kind not in plain and hasattr(kind, "__torch_dispatch__") and _dispatches(kind) for kind in types):
                # The tensors that it holds come by later.
                return NotImplemented
            if _is_composite(operator):
                # As tensors of the inference mode bring it: of others, its parts come by.
                with self:
                    result = operator.decompose(*args, **(kwargs or {}))
                if result is not NotImplemented:
                    return result
            return _run(operator, args, kwargs or {})

    return Simulation()


@functools.cache
def _is_composite(operator: Any) -> bool:
    import torch

    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CompositeImplicitAutograd"))


def _dispatches(kind: Any) -> bool:
    import torch

    return kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl


def _run(operator: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    packet, overload = _name(operator)
    if packet == "is_pinned":
        return is_pinned(args[0])
    inputs = list(tensors_in((*args, *kwargs.values())))
    places = [place_of(tensor) for tensor in inputs]
    asked, pinned = kwargs.get("device"), kwargs.get("pin_memory")
    if pinned or (asked is not None and asked.type == "cuda"):
        kwargs = kwargs | {"device": cpu()} | ({"pin_memory": False} if pinned else {})
    if At.GPU in places and waits(packet, overload, args, kwargs):
        wait()
    result = _on_the_cpu(operator, packet, args, kwargs)
    if packet == "lift_fresh" and not state.asks:
        note_list(result)
    if pinned:
        pin(result)
    _follow(packet, asked, inputs, places, result)
    return result


@functools.cache
def _name(operator: Any) -> tuple[str, str]:
    """The name and the overload of an operator of torch's own; of others the first with its library."""
    packet, _, overload = str(operator).removeprefix("aten.").partition(".")
    return packet, overload


def _follow(packet: str, asked: Any, inputs: list[Any], places: list[At], result: Any) -> None:
    """Say where the tensors of a result are, by where the inputs are and which device was asked for."""
    if At.GPU in places:
        for tensor, place in zip(inputs, places, strict=True):
            if place is At.EITHER:
                put(tensor, At.GPU)
    at = _place_of_results(packet, asked, inputs, places)
    if at is At.HOST:
        return
    outputs = list(tensors_in((result,)))
    if packet == "_pack_padded_sequence":
        outputs = outputs[:1]  # the sizes of the batches are on the host
    known = {_identity(tensor) for tensor in inputs}
    for output in outputs:
        if _identity(output) not in known:
            put(output, at)


def _place_of_results(packet: str, asked: Any, inputs: list[Any], places: list[At]) -> At:
    if asked is not None and asked.type == "cuda":
        return At.GPU
    if asked is not None and asked.type == "cpu" and state.asks:
        return At.HOST
    if packet in _FOLLOWS_FIRST and places:
        return places[0]
    if At.GPU in places:
        return At.GPU
    if At.EITHER in places:
        # Numbers on the host go with everything.
        on_host = any(at is At.HOST and tensor.dim() for tensor, at in zip(inputs, places, strict=True))
        return At.HOST if on_host else At.EITHER
    return At.EITHER if asked is not None and not places else At.HOST


def _identity(tensor: Any) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return id(tensor)


def _on_the_cpu(operator: Any, packet: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of an operator, in single precision if the CPU does not support the given one well."""
    if packet in _HEAVY and (kinds := _halves(args, kwargs)):
        return _in_single_precision(operator, args, kwargs, kinds)
    try:
        return operator(*args, **kwargs)
    except (RuntimeError, NotImplementedError) as error:
        kinds = _halves(args, kwargs)
        if _LACKING not in str(error) or operator._schema.is_mutable or not kinds:
            raise
    return _in_single_precision(operator, args, kwargs, kinds)


def _halves(args: Any, kwargs: dict[str, Any]) -> set[Any]:
    """The types of less than single precision among the arguments."""
    import torch

    short = (torch.float16, torch.bfloat16)
    return {tensor.dtype for tensor in tensors_in((*args, *kwargs.values())) if tensor.dtype in short}


def _in_single_precision(operator: Any, args: Any, kwargs: dict[str, Any], kinds: set[Any]) -> Any:
    import torch
    from torch.utils._pytree import tree_map_only

    def widened(tensor: Any) -> Any:
        return tensor.float() if tensor.dtype in kinds else tensor

    def narrowed(tensor: Any) -> Any:
        return tensor.to(min(kinds, key=str)) if tensor.dtype is torch.float32 else tensor

    wide_args, wide_kwargs = tree_map_only(torch.Tensor, widened, (args, kwargs))
    return tree_map_only(torch.Tensor, narrowed, operator(*wide_args, **wide_kwargs))


def enter_in_threads() -> None:
    """Have a mode see this thread and the main one, and others those that are started from now on."""
    bootstrap = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def bootstrapped(thread: threading.Thread) -> None:
        with make_mode():
            bootstrap(thread)

    threading.Thread._bootstrap_inner = bootstrapped  # type: ignore[attr-defined]
    make_mode().__enter__()
    if threading.current_thread() is not threading.main_thread():
        ctypes.pythonapi.Py_AddPendingCall(_enter_in_main_thread, None)


def _enter(_: int | None) -> int:
    make_mode().__enter__()
    return 0


_enter_in_main_thread = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_enter)
"""The interpreter calls it there: a thread has its own stack of modes, which no other can change."""

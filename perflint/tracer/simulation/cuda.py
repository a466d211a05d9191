"""A replacement for `torch.cuda`: one GPU that is always idle, has plenty of memory and does nothing."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from perflint.tracer.simulation.devices import count, number
from perflint.tracer.simulation.marks import Replacements, noted
from perflint.tracer.simulation.streams import DeviceContext, Event, Stream, StreamContext

NAME = "simulated GPU"
_MEMORY = 80 << 30
"""Bytes, as of the larger data centre GPUs of the time."""
_CAPABILITY = (9, 0)
_MULTIPROCESSORS = 132
_CANNOT = "`perflint trace --simulate` cannot run {what}: {why}. Trace the program on a GPU, or without that part."


_ZERO = """
memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached max_memory_cached
get_sync_debug_mode utilization memory_usage temperature power_draw clock_rate device_memory_used
get_per_process_memory_fraction
"""
_NOTHING = """
reset_peak_memory_stats reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached ipc_collect
set_per_process_memory_fraction set_sync_debug_mode set_device set_rng_state set_rng_state_all synchronize empty_cache
caching_allocator_enable _record_memory_history _sleep _set_allocator_settings _lazy_call _set_rng_state_offset
"""
_YES = "is_available is_bf16_supported is_tf32_supported _is_compiled"
_NO = "_is_in_bad_fork is_current_stream_capturing can_device_access_peer"
"""The results of functions of `torch.cuda`, by name."""


class SimulationError(RuntimeError):
    """The program needs something of a GPU that cannot be simulated."""


class Gpu:
    """The state of the simulated GPU that the program has changed."""

    initialised = False
    seed = 0


def replacements() -> Replacements:
    """The replaced names of `torch.cuda`, with their replacements. Needs torch."""
    import torch

    found: Replacements = {}
    modules = (torch.cuda, torch.cuda.memory, torch.cuda.random, torch.cuda.streams, torch.cuda.graphs)
    for name, value in _values().items():
        for module in modules:
            original = getattr(module, name, None)
            if original is not None:
                noted(found, original, _named_as(original, value))
    for name, value in (("Event", Event), ("Stream", Stream)):
        noted(found, getattr(torch, name), value)
    return found


def _named_as(original: Any, value: Any) -> Any:
    if isinstance(original, type) or isinstance(value, type):
        return value
    return functools.wraps(original)(lambda *args, **named: value(*args, **named))


def _values() -> dict[str, Any]:
    import torch

    current = StreamContext.current
    zero, nothing, yes, no = _giving(0), _giving(None), _giving(True), _giving(False)
    values: dict[str, Any] = dict.fromkeys(_ZERO.split(), zero) | dict.fromkeys(_NOTHING.split(), nothing)
    values |= dict.fromkeys(_YES.split(), yes) | dict.fromkeys(_NO.split(), no)
    values |= {
        "device_count": count,
        "current_device": number,
        "is_initialized": lambda: Gpu.initialised,
        "init": _initialise,
        "_lazy_init": _initialise,
        "get_device_name": _giving(NAME),
        "get_device_capability": _giving(_CAPABILITY),
        "get_device_properties": lambda device=None: _properties(),
        "get_arch_list": lambda: [f"sm_{_CAPABILITY[0]}{_CAPABILITY[1]}"],
        "mem_get_info": lambda device=None: (_MEMORY, _MEMORY),
        "memory_stats": lambda device=None: OrderedDict(),
        "memory_stats_as_nested_dict": lambda device=None: {},
        "memory_summary": _giving(f"{NAME}: its memory is not simulated"),
        "memory_snapshot": lambda *_, **__: [],
        "manual_seed": _seed,
        "manual_seed_all": _seed,
        "seed": lambda: _seed(torch.seed()),
        "seed_all": lambda: _seed(torch.seed()),
        "initial_seed": lambda: Gpu.seed,
        "get_rng_state": lambda device=None: torch.zeros(16, dtype=torch.uint8),
        "get_rng_state_all": lambda: [torch.zeros(16, dtype=torch.uint8)],
        "Event": Event,
        "Stream": Stream,
        "ExternalStream": Stream,
        "current_stream": current.get,
        "default_stream": current.default,
        "set_stream": current.set,
        "stream": StreamContext,
        "StreamContext": StreamContext,
        "device": DeviceContext,
        "device_of": DeviceContext,
        "CUDAGraph": _refuse("CUDA graphs", "the CPU cannot play them again"),
        "graph": _refuse("CUDA graphs", "the CPU cannot play them again"),
        "make_graphed_callables": _refuse("CUDA graphs", "the CPU cannot play them again"),
        "_compile_kernel": _refuse("CUDA kernels", "they are not code of the CPU"),
    }
    return values


def _giving(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _initialise(*_: object) -> None:
    """The program uses the GPU for the first time."""
    Gpu.initialised = True


def _seed(seed: int) -> int:
    Gpu.seed = int(seed)
    return Gpu.seed


def _properties() -> Any:
    major, minor = _CAPABILITY
    return SimpleNamespace(
        name=NAME,
        major=major,
        minor=minor,
        total_memory=_MEMORY,
        multi_processor_count=_MULTIPROCESSORS,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=232448,
        shared_memory_per_multiprocessor=233472,
        L2_cache_size=50 << 20,
        is_integrated=0,
        is_multi_gpu_board=0,
        gcnArchName="",
        uuid="",
    )


def _refuse(what: str, why: str) -> Any:
    class Refused:
        def __new__(cls, *_: object, **__: object) -> Any:
            raise SimulationError(_CANNOT.format(what=what, why=why))

    return Refused


def install() -> None:
    """Replace functions of torch outside of `torch.cuda`. Needs torch."""
    import torch

    core: Any = torch._C
    core._cuda_set_sync_debug_mode = _giving(None)
    core._cuda_getCurrentRawStream = _giving(0)
    core._scatter = lambda tensor, *_: (tensor.to("cuda", non_blocking=True),)
    core._group_tensors_by_device_and_dtype = _grouped(core._group_tensors_by_device_and_dtype)
    ranges: Any = torch.cuda.nvtx
    ranges._nvtx = SimpleNamespace(
        **dict.fromkeys(["rangePushA", "rangePop", "rangeStartA", "rangeEnd", "markA", "deviceRangeStart"], _giving(0)),
        deviceRangeEnd=_giving(None),
    )
    torch.backends.cudnn.is_acceptable = _giving(False)
    torch.backends.cuda.is_built = _giving(True)
    accelerator: Any = getattr(torch, "accelerator", None)
    if accelerator is not None:
        accelerator.is_available = _giving(True)
        accelerator.current_accelerator = lambda check_available=False: torch.device("cuda")
        accelerator.device_count = count
        accelerator.current_device_index = accelerator.current_device_idx = number
        accelerator.set_device_index = accelerator.set_device_idx = _giving(None)
        accelerator.current_stream = torch.cuda.current_stream
        accelerator.set_stream = torch.cuda.set_stream
        accelerator.synchronize = lambda *_: torch.cuda.synchronize()


def _grouped(original: Callable[..., Any]) -> Callable[..., Any]:
    """Optimizers ask how tensors go together: those of the GPU are alike for them, and not like the host's."""

    def grouped(lists: Any, with_indices: bool = False) -> Any:
        found: dict[Any, Any] = {}
        for at, tensor in enumerate(lists[0]):
            key = (tensor.device, tensor.dtype)
            rows, numbers = found.setdefault(key, ([[] for _ in lists], []))
            for row, tensors in zip(rows, lists, strict=True):
                if tensors:
                    row.append(tensors[at])
            if with_indices:
                numbers.append(at)
        return found

    return functools.wraps(original)(grouped)

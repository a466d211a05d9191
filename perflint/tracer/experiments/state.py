"""Keeps from the program what experiments do to the process."""

from __future__ import annotations

import gc
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

_HOOKS = (
    "_global_backward_pre_hooks",
    "_global_backward_hooks",
    "_global_forward_pre_hooks",
    "_global_forward_hooks",
    "_global_forward_hooks_always_called",
    "_global_forward_hooks_with_kwargs",
)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Leave random numbers, modes, flags, hooks of all modules, the compiler and the allocator as they were.

    Inside, gradients are on, autocast is off, and no global module hooks run. The allocator's
    record of its peak is not restored: torch has no way to.
    """
    import torch

    cuda: Any = torch.cuda
    with ExitStack() as stack:
        if cuda.is_initialized():
            cuda.synchronize()
            stack.callback(_give_back)
        stack.callback(_end_workers, has_pool=bool(_pools()))
        stack.enter_context(_random_numbers())
        stack.enter_context(_flags())
        stack.enter_context(_no_hooks())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cuda", "cpu"):
            stack.enter_context(torch.autocast(device, enabled=False))
        torch.manual_seed(0)
        yield


def _pools() -> Any:
    """The compiler's pools of processes."""
    return getattr(sys.modules.get("torch._inductor.async_compile"), "_pool_set", ())


def _end_workers(has_pool: bool) -> None:
    """End the compiler's processes, unless the program had some before; it starts them anew where it needs them."""
    end = getattr(sys.modules.get("torch._inductor.async_compile"), "shutdown_compile_workers", None)
    if _pools() and not has_pool and end is not None:
        end()


def _give_back() -> None:
    import torch

    gc.collect()
    torch.cuda.synchronize()
    # So that what the program has of the GPU is as much as before.
    torch.cuda.empty_cache()


@contextmanager
def _random_numbers() -> Iterator[None]:
    import torch

    cuda: Any = torch.cuda
    host, python = torch.get_rng_state(), random.getstate()
    devices = cuda.get_rng_state_all() if cuda.is_initialized() else None
    numpy: Any = sys.modules.get("numpy")
    array = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        torch.set_rng_state(host)
        random.setstate(python)
        if devices is not None:
            cuda.set_rng_state_all(devices)
        if array is not None:
            numpy.random.set_state(array)


@contextmanager
def _flags() -> Iterator[None]:
    import torch

    cudnn: Any = torch.backends.cudnn
    with ExitStack() as stack:
        for owner, name in ((cudnn, "benchmark"), (cudnn, "deterministic")):
            stack.callback(setattr, owner, name, getattr(owner, name))
        yield


@contextmanager
def tf32(matmul: bool, convolution: bool) -> Iterator[None]:
    """True if float32 is computed in TF32. Raises RuntimeError where the program mixes torch's ways to say it."""
    import torch

    products: Any = torch.backends.cuda.matmul
    cudnn: Any = torch.backends.cudnn
    with ExitStack() as stack:
        for owner, value in ((products, matmul), (cudnn, convolution)):
            stack.callback(setattr, owner, "allow_tf32", owner.allow_tf32)
            owner.allow_tf32 = value
        yield


@contextmanager
def _no_hooks() -> Iterator[None]:
    from torch.nn.modules import module

    # Emptied, not replaced: torch's own functions hold them. Those of optimizers stay: torch may be walking them.
    held = [(hooks, dict(hooks)) for name in _HOOKS if (hooks := getattr(module, name, None)) is not None]
    for hooks, _ in held:
        hooks.clear()
    try:
        yield
    finally:
        for hooks, kept in held:
            # What was registered meanwhile, by another thread, comes after.
            meanwhile = dict(hooks)
            hooks.clear()
            hooks.update(kept | meanwhile)

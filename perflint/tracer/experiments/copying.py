"""Copies of a model for experiments, and the memory that they need."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from perflint.tracer.experiments.base import NotPossible
from perflint.tracer.modules import tensors

if TYPE_CHECKING:
    import torch

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_MORE = ("_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs")
_OWN = frozenset(("_parameters", "_buffers", "_modules"))
_FAILURES = (TypeError, ValueError, AttributeError, RuntimeError)
"""Errors of `copy.deepcopy`."""
_REACH = 10_000
"""Objects that an attribute may lead to. One that leads to more is not shared."""
_LEADS_EVERYWHERE = (ModuleType, type, FunctionType, FrameType)


def copied(module: Any, extra: int = 0) -> Any:
    """A copy of a model without gradients and without hooks but torch's own.

    Attributes that cannot be copied, such as a writer of logs, are shared if they hold no tensors. Raises NotPossible
    if the model cannot be copied, or if the GPU has no room for it and `extra` bytes more.
    """
    held = [*module.parameters(), *module.buffers()]
    check_room(str(held[0].device) if held else "cpu", size_in_bytes(held) + extra)
    gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    memo: dict[int, Any] = {id(gradient): None for gradient in gradients}
    computed = list(_computed(module))
    memo |= {id(tensor): tensor.detach().clone() for tensor in computed}
    try:
        # A failed copy leaves its parts in the memory that it was given.
        other = copy.deepcopy(module, dict(memo))
    except _FAILURES:
        memo |= {id(value): value for value in _shared(module)}
        try:
            other = copy.deepcopy(module, memo)
        except _FAILURES as error:
            raise NotPossible(f"the model cannot be copied: {error}") from None
    for inner in other.modules():
        for name in _HOOKS:
            _strip(inner, name)
    return other


def _computed(module: Any) -> Iterator[torch.Tensor]:
    """Tensors that modules keep from their last call, such as a pruned weight: torch does not copy their history."""
    import torch

    for inner in module.modules():
        for value in vars(inner).values():
            if isinstance(value, torch.Tensor) and not value.is_leaf:
                yield value


def _shared(module: Any) -> Iterator[Any]:
    """The attributes of modules that cannot be copied and hold no tensors."""
    held = [*module.modules(), *module.parameters(), *module.buffers()]
    for inner in module.modules():
        for name, value in vars(inner).items():
            if name in _OWN:
                continue
            try:
                copy.deepcopy(value, {id(each): each for each in held})
            except _FAILURES:
                if not _may_hold_tensors(value):
                    yield value


def _may_hold_tensors(value: Any) -> bool:
    """True if an object leads to a tensor or module, or to too many objects."""
    import torch

    seen, waiting = {id(value)}, [value]
    while waiting:
        if len(seen) > _REACH:
            return True
        for each in gc.get_referents(waiting.pop()):
            if isinstance(each, (torch.Tensor, torch.nn.Module)):
                return True
            if id(each) not in seen and not isinstance(each, _LEADS_EVERYWHERE):
                seen.add(id(each))
                waiting.append(each)
    return False


def _strip(module: Any, name: str) -> None:
    hooks: dict[int, Callable[..., Any]] = getattr(module, name, None) or {}
    for number, hook in list(hooks.items()):
        kind = hook if hasattr(hook, "__qualname__") else type(hook)
        # Those of torch compute weights: of weight_norm, pruning and their like.
        if not str(getattr(kind, "__module__", "")).startswith("torch."):
            del hooks[number]
            for more in _MORE:
                getattr(module, more, {}).pop(number, None)


def check_room(device: str, need: int) -> None:
    """Raise NotPossible where the GPU has no room for so many bytes."""
    import torch

    if not device.startswith("cuda"):
        return
    free, _ = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if need > free:
        raise NotPossible(f"it needs {need / 2**30:.1f} GiB of the GPU's memory, and {free / 2**30:.1f} are free")


def size_in_bytes(value: Any) -> int:
    """Of the tensors in something."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors(value))

"""The program's state after the recorded steps: its model with the arguments of its calls, and optimizers."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from perflint.tracer.events import Place
from perflint.tracer.experiments.base import Mode, NotPossible
from perflint.tracer.experiments.copying import copied
from perflint.tracer.modules import autocast_dtype

if TYPE_CHECKING:
    import torch

SHARE = 16
"""A call's arguments are kept where they take no more than this part of the GPU's memory."""
_PLAIN = (type(None), bool, int, float, complex, str)


@dataclass(slots=True)
class RootCall:
    """The first recorded call of a root module in training, or outside of it."""

    module: weakref.ref[Any]
    mode: Mode
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    missing: str
    """Why there are no arguments; empty where there are."""
    place: Place | None = None
    """The user's call."""
    count: int = 1
    training: tuple[bool, ...] = ()
    """The mode of the module and of each inside, in the order of `modules()`, when it was called."""

    def copy(self, extra: int = 0) -> Any:
        """A copy of the model in the modes of the call: the program may have changed them since. Raises NotPossible."""
        other = copied(unwrapped(self.module()), extra)
        held = list(other.modules())
        # Wrappers come first, and the copy has none.
        modes = self.training[len(self.training) - len(held) :] if len(self.training) >= len(held) else ()
        for inner, training in zip(held, modes or [self.mode.training] * len(held), strict=True):
            inner.training = training
        return other


class Live:
    """Keeps what recorded steps used, without keeping modules and optimizers alive.

    `find` gives the innermost place of the user's code around a frame.
    """

    def __init__(self, find: Callable[[FrameType], Place | None] = lambda _: None) -> None:
        self._find = find
        self._optimizers: dict[int, weakref.ref[Any]] = {}
        self._roots: dict[tuple[int, bool], RootCall] = {}

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has made a step."""
        if id(optimizer) not in self._optimizers:
            self._optimizers[id(optimizer)] = weakref.ref(optimizer)

    def optimizers(self) -> list[Any]:
        """Those that still are."""
        return [optimizer for known in self._optimizers.values() if (optimizer := known()) is not None]

    def called(self, module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """A root module has been called in a recorded step."""
        import torch

        training, grad = bool(module.training), torch.is_grad_enabled()
        key = id(module), training and grad
        known = self._roots.get(key)
        if known is not None and known.module() is module:
            known.count += 1
            return
        parameter = next(iter(module.parameters()), None)
        if parameter is None:
            return
        missing = ""
        kept: tuple[tuple[Any, ...], dict[str, Any]] = (), {}
        try:
            kept = _kept((arguments, named), torch.Tensor)
        except NotPossible as reason:
            missing = str(reason)
        inference = torch.is_inference_mode_enabled()
        mode = Mode(str(parameter.device), autocast_dtype(), training, grad, inference, training and grad)
        place = self._find(sys._getframe(1))
        modes = tuple(bool(inner.training) for inner in module.modules())
        self._roots[key] = RootCall(weakref.ref(module), mode, *kept, missing, place, training=modes)

    def root(self) -> RootCall | None:
        """The call of the module with the most parameters, among those that still are."""
        return next(iter(self.roots()), None)

    def roots(self) -> list[RootCall]:
        """The calls of modules that still are, those with the most parameters first: in training, if they train."""
        found = {}
        for call in sorted(self._roots.values(), key=lambda each: each.mode.backward):
            if (module := call.module()) is not None:
                found[id(module)] = call, sum(parameter.numel() for parameter in module.parameters())
        return [call for call, _ in sorted(found.values(), key=lambda pair: -pair[1])]

    def evaluation_of(self, root: RootCall) -> RootCall | None:
        """The call outside of training of a module that also trains; None if there is no such call."""
        other = self._roots.get((id(root.module()), False)) if root.mode.backward else None
        return other if other is not None and other.module() is root.module() else None

    def forget(self) -> None:
        """Let go of the arguments."""
        self._roots.clear()


def _kept(value: Any, tensor: type[torch.Tensor]) -> Any:
    """A copy of arguments: tensors, plain values, and tuples, lists and dicts of these. Raises NotPossible."""
    if isinstance(value, tensor):
        _check_size(value)
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, _PLAIN) or type(value).__module__ == "torch":
        return value
    if type(value) in (tuple, list):
        return type(value)(_kept(item, tensor) for item in value)
    if isinstance(value, dict):
        return {key: _kept(item, tensor) for key, item in value.items()}
    raise NotPossible(f"the model is called with a {type(value).__qualname__}, which cannot be kept for another call")


def _check_size(tensor: torch.Tensor) -> None:
    import torch

    if tensor.is_cuda:
        limit = torch.cuda.get_device_properties(tensor.device).total_memory // SHARE
        if tensor.numel() * tensor.element_size() > limit:
            raise NotPossible("the model's arguments are too large to be kept for another call")


def unwrapped(module: Any) -> Any:
    """The model inside what distributes it. Raises NotPossible for what only works with the other processes."""
    while type(module).__name__ in ("DistributedDataParallel", "DataParallel"):
        module = module.module
    if type(module).__name__ == "OptimizedModule":
        raise NotPossible("the model is compiled")
    for inner in module.modules():
        if type(inner).__name__ in ("SyncBatchNorm", "FullyShardedDataParallel", "OptimizedModule"):
            raise NotPossible(f"the model holds a {type(inner).__name__}")
    if any(type(parameter).__name__ == "DTensor" for parameter in module.parameters()):
        raise NotPossible("the model's parameters are distributed")
    return module

"""Records the state of a training: before the first step of each optimizer, and at the end."""

from __future__ import annotations

import gc
import hashlib
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from perflint.tracer.sketch import Sketch, sketched

MOST = 8
"""Optimizers whose states are kept alive until the end: more are those of several trainings in a row."""
_WRAPPERS = re.compile(r"(?:^|(?<=\.))(?:_orig_mod|module)\.")
"""Parts of names that torch.compile and data parallelism add."""
_Reads = dict[str, Callable[[], Sketch]]


class States:
    """The states of the trainings of a process."""

    def __init__(self, contained: Callable[[], AbstractContextManager[None]]) -> None:
        """Faults in `contained` are none of the program's."""
        self._contained = contained
        self._start: _Reads = {}
        self._gradients: _Reads = {}
        self._random: dict[str, str] = {}
        self._trainings: list[_Training] = []

    def watch(self) -> None:
        """Record from here on. Needs torch."""
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        def before(optimizer: Any, *_: object) -> None:
            if not any(each.optimizer is optimizer for each in self._trainings):
                with self._contained():
                    self._begin(optimizer)

        register_optimizer_step_pre_hook(before)

    def recorded(self) -> dict[str, Any]:
        """The states so far and as they are now, as values of JSON."""
        final = {name: read for each in self._trainings for name, read in each.state().items()}
        states = {"start": self._start, "gradients": self._gradients, "final": final}
        found: dict[str, Any] = {
            kind: {name: [sketch.size, sketch.bits, *sketch.sums] for name, sketch in _read(reads)}
            for kind, reads in states.items()
        }
        return found | {"random_start": self._random, "random_final": random_state() if self._trainings else {}}

    def _begin(self, optimizer: Any) -> None:
        import torch

        cuda: Any = torch.cuda
        if torch.compiler.is_compiling() or (cuda.is_initialized() and cuda.is_current_stream_capturing()):
            return
        number = 1 + max((each.number for each in self._trainings), default=0)
        training = _Training(optimizer, number)
        self._trainings = [*self._trainings, training][-MOST:]
        self._random = self._random or random_state()
        self._start |= training.state()
        self._gradients |= training.gradients()


class _Training:
    """An optimizer, and the modules whose parameters it steps."""

    def __init__(self, optimizer: Any, number: int) -> None:
        self.optimizer = optimizer
        self.number = number
        own = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        # Models of several optimizers may have one class, as those of agents have.
        prefix = "" if number == 1 else f"optimizer {number}: "
        self._roots = [(prefix + name, module) for name, module in _roots(own)]
        self._names = {
            id(tensor): f"{root}.{name}"
            for root, module in self._roots
            for name, tensor in _named(module.named_parameters())
        }
        for index, parameter in enumerate(own):
            shape = " × ".join(map(str, parameter.shape)) or "1"
            self._names.setdefault(id(parameter), f"parameter {index} ({shape}) of optimizer {number}")

    def state(self) -> _Reads:
        """The parameters, the buffers, and the state of the optimizer."""
        return {name: sketched(tensor) for name, tensor in dict(self._tensors()).items()}

    def gradients(self) -> _Reads:
        """The gradients of the parameters that have one."""
        # A fused optimizer divides by the factor of `GradScaler` itself.
        scale = getattr(self.optimizer, "grad_scale", None)
        return {
            self._names[id(parameter)]: sketched(parameter.grad, scale)
            for group in self.optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        }

    def _tensors(self) -> Iterator[tuple[str, Any]]:
        import torch

        for root, module in self._roots:
            for name, tensor in _named(module.named_parameters()):
                yield f"parameter {root}.{name}", tensor
            for name, tensor in _named(module.named_buffers()):
                yield f"buffer {root}.{name}", tensor
        for place, group in enumerate(self.optimizer.param_groups):
            for index, parameter in enumerate(group["params"]):
                name = self._names.get(id(parameter), f"added parameter {index} of group {place} of {self.number}")
                yield f"parameter {name}", parameter
                for key, value in self.optimizer.state.get(parameter, {}).items():
                    if isinstance(value, torch.Tensor | int | float):
                        yield f"state {key} of {name}", torch.as_tensor(value)
            if isinstance(group.get("lr"), torch.Tensor | int | float):
                yield f"state lr of group {place} of optimizer {self.number}", torch.as_tensor(group["lr"]).float()


def _roots(parameters: list[Any]) -> Iterator[tuple[str, Any]]:
    """The outermost modules that hold some of the parameters, in the order of these, with a name for each."""
    from torch.nn import Module

    modules = [each for each in gc.get_objects() if issubclass(type(each), Module)]
    inner = {id(child) for module in modules for child in module.__dict__.get("_modules", {}).values()}
    outer = [module for module in modules if id(module) not in inner and "_parameters" in module.__dict__]
    place = {id(parameter): index for index, parameter in enumerate(parameters)}
    found = []
    for module in outer:
        places = [place[id(each)] for each in module.parameters() if id(each) in place]
        if places:
            found.append((min(places), module))
    names: list[str] = []
    for _, module in sorted(found, key=lambda pair: pair[0]):
        name = type(_unwrapped(module)).__name__
        names.append(name)
        yield (name if names.count(name) == 1 else f"{name}#{names.count(name)}"), module


def _unwrapped(module: Any) -> Any:
    """The module in the wrappers of torch.compile and data parallelism."""
    while len(module._modules) == 1 and next(iter(module._modules)) in ("_orig_mod", "module"):
        module = next(iter(module._modules.values()))
    return module


def _named(tensors: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, tensor in tensors:
        yield _WRAPPERS.sub("", name), tensor


def _read(reads: _Reads) -> Iterator[tuple[str, Sketch]]:
    for name, read in reads.items():
        yield name, read()


def random_state() -> dict[str, str]:
    """A digest of the state of each generator of random numbers that the program has."""
    import torch

    states: dict[str, Any] = {"python": repr(random.getstate()).encode(), "torch": _bytes(torch.get_rng_state())}
    if "numpy" in sys.modules:
        states["numpy"] = repr(sys.modules["numpy"].random.get_state(legacy=False)["state"]).encode()
    cuda: Any = torch.cuda
    if cuda.is_initialized():
        states["cuda"] = _bytes(cuda.get_rng_state())
    return {name: hashlib.sha256(state).hexdigest()[:16] for name, state in states.items()}


def _bytes(tensor: Any) -> bytes:
    return bytes(tensor.tolist())

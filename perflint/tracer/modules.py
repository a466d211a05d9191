"""The arguments of module calls, and the places where modules were created."""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from perflint.tracer.events import ModuleCall, Place, TensorFacts
from perflint.tracer.hooks import around_forwards
from perflint.tracer.identity import ByIdentity
from perflint.tracer.places import Locator
from perflint.tracer.replacing import replace

if TYPE_CHECKING:
    import torch

Guard = Callable[[Callable[..., object]], Callable[..., None]]
"""Makes of a function one whose faults and whose use of the GPU are the tracer's own."""
STEPS = 2
"""Recorded steps whose calls are looked at: they cost some microseconds each."""
TENSOR_LIMIT = 8
CALL_LIMIT = 20_000
GIVER_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class _Call:
    """The key of equal calls of a module."""

    name: str
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    training: bool
    grad: bool
    inference: bool
    autocast: str
    follows: str


class MadeAt:
    """Notes where the user's code constructs modules, optimizers and loaders."""

    def __init__(self, locator: Locator) -> None:
        self._locator = locator
        self._frames: ByIdentity[Place] = ByIdentity()
        self._undo = ExitStack()

    def start(self) -> None:
        """Note from here on. Needs torch."""
        import torch

        self._watch(torch.nn.Module)
        self._watch(torch.optim.Optimizer)
        self._watch(torch.utils.data.DataLoader)

    def _watch(self, cls: Any) -> None:
        original = cls.__init__

        @functools.wraps(original)
        def watched(module: Any, *arguments: Any, **named: Any) -> None:
            original(module, *arguments, **named)
            if (found := self._locator.find(_outside(module, sys._getframe(1)))) is not None:
                self._frames[module] = found.place

        replace(self._undo, cls, "__init__", watched)

    def stop(self) -> None:
        """Note no more."""
        self._undo.close()

    def get(self, module: Any) -> Place | None:
        """The place that made a module, an optimizer or a loader; None if that was not seen."""
        return self._frames.get(module)


def _outside(module: Any, frame: FrameType | None) -> FrameType | None:
    """The frame around the constructors of a module."""
    while frame is not None and frame.f_code.co_name == "__init__" and frame.f_locals.get("self") is module:
        frame = frame.f_back
    return frame


RootCalled = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]
"""Gets the module, its arguments and its named ones."""


class ModuleCalls:
    """Records calls while `records` is set; the hooks are there before, to know the root of each call."""

    def __init__(self, made: Callable[[Any], Place | None], guarded: Guard) -> None:
        self._made = made
        # What some layers say of themselves reads their weights.
        self._note = guarded(self._note_call)
        self._calls: Counter[tuple[int, _Call]] = Counter()
        self._facts: dict[int, tuple[str, str, Place | None]] = {}
        self._names: ByIdentity[dict[int, str]] = ByIdentity()
        self._thread = threading.local()
        self._undo: ExitStack | None = None
        self.on_root: RootCalled | None = None
        """Called for recorded calls of root modules, when they have returned."""
        self.records = False
        self.steps = 0

    def start(self) -> None:
        """Listen from here on. Needs torch."""
        if self._undo is not None:
            return

        def before(module: Any, arguments: Any) -> None:
            # Before `forward` writes to them.
            self._running.append((module, self._givers.of(arguments) if self.records else ""))

        def after(module: Any, arguments: Any, named: Any, output: Any) -> None:
            if self.records and (running := self._running):
                self._note(module, running[0][0], running[-1][1], (arguments, named), output)
                if self.on_root is not None and len(running) == 1:
                    self.on_root(module, arguments, named)

        def left() -> None:
            if self._running:
                self._running.pop()

        self._undo = around_forwards(before, after, left)

    def end_step(self) -> None:
        """A recorded step ended."""
        if self.records:
            self.steps += 1
            if self.steps >= STEPS:
                self.stop()

    def restart(self, keep: bool) -> None:
        """The steps so far were none; `keep` says whether their calls still count."""
        self.steps = 0
        if not keep:
            self._calls.clear()

    def stop(self) -> None:
        """Listen no longer."""
        self.records = False
        if self._undo is not None:
            self._undo.close()
            self._undo = None
            self._thread = threading.local()

    @property
    def _givers(self) -> _Givers:
        if not hasattr(self._thread, "givers"):
            self._thread.givers = _Givers()
        givers: _Givers = self._thread.givers
        return givers

    @property
    def _running(self) -> list[tuple[Any, str]]:
        """The modules that run on this thread, outermost first, and whose output each takes."""
        if not hasattr(self._thread, "running"):
            self._thread.running = []
        running: list[tuple[Any, str]] = self._thread.running
        return running

    def _note_call(self, module: Any, root: Any, follows: str, inputs: Any, output: Any) -> None:
        import torch

        if len(self._calls) >= CALL_LIMIT:
            return
        name = self._name(module, root)
        call = _Call(
            name,
            tuple(_facts(inputs)),
            tuple(_facts(output)),
            bool(module.training),
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            autocast_dtype(),
            follows,
        )
        self._givers.note(name, output)
        self._calls[id(module), call] += 1
        if id(module) not in self._facts:
            kind = type(module)
            own = kind.__module__.startswith("torch.nn.")
            settings = _settings(module) if own else ""
            self._facts[id(module)] = (f"{kind.__module__}.{kind.__qualname__}", settings, self._made(module))

    def _name(self, module: Any, root: Any) -> str:
        if type(root).__hash__ is None:
            # torch cannot list the modules in it.
            return ""
        names = self._names.get(root)
        if names is None or id(module) not in names:
            names = self._names[root] = {id(inner): name for name, inner in root.named_modules()}
        return names.get(id(module), "")

    def calls(self) -> tuple[ModuleCall, ...]:
        """The calls, and their number."""
        return tuple(
            ModuleCall(
                call.name,
                *self._facts[number],
                call.inputs,
                call.outputs,
                call.training,
                call.grad,
                call.inference,
                call.autocast,
                count,
                self.steps,
                call.follows,
            )
            for (number, call), count in self._calls.items()
        )


class _Givers:
    """The module that returned a tensor, unless the tensor was written to since."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, int, str]] = {}

    def note(self, name: str, output: Any) -> None:
        """A module has put something out; what an inner one put out stays that one's."""
        first = next(tensors(output), None)
        if first is None or self._name(first):
            return
        if len(self._known) >= GIVER_LIMIT:
            self._known.clear()
        self._known[id(first)] = (weakref.ref(first), _version(first), name)

    def of(self, inputs: Any) -> str:
        """The module that put out the first of the inputs; empty where none did."""
        first = next(tensors(inputs), None)
        return "" if first is None else self._name(first)

    def _name(self, tensor: torch.Tensor) -> str:
        known = self._known.get(id(tensor))
        if known is None or known[0]() is not tensor or known[1] != _version(tensor):
            return ""
        return known[2]


def _version(tensor: torch.Tensor) -> int:
    # Nobody counts writes to a tensor of inference mode.
    return -1 if tensor.is_inference() else tensor._version


def _settings(module: Any) -> str:
    """The settings of a layer of torch: its `extra_repr`, or the arguments of a `MultiheadAttention`."""
    if type(module).__name__ != "MultiheadAttention":
        return str(module.extra_repr())
    text = f"{module.embed_dim}, {module.num_heads}, dropout={module.dropout}, batch_first={module.batch_first}"
    if module.kdim != module.embed_dim or module.vdim != module.embed_dim:
        text += f", kdim={module.kdim}, vdim={module.vdim}"
    for name, is_set in (
        ("bias=False", module.in_proj_bias is None),
        ("add_bias_kv=True", module.bias_k is not None),
        ("add_zero_attn=True", module.add_zero_attn),
    ):
        text += f", {name}" if is_set else ""
    return text


def _facts(value: Any) -> Iterator[TensorFacts]:
    for _, tensor in zip(range(TENSOR_LIMIT), tensors(value), strict=False):
        yield _tensor_facts(tensor)


def tensors(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """The tensors in the input or output of a module, through tuples, lists and dicts."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif depth < 4 and isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item, depth + 1)
    elif depth < 4 and isinstance(value, dict):
        for item in value.values():
            yield from tensors(item, depth + 1)


def _tensor_facts(tensor: torch.Tensor) -> TensorFacts:
    shape = () if tensor.is_nested else tuple(int(size) for size in tensor.shape)
    dtype = str(tensor.dtype).removeprefix("torch.")
    return TensorFacts(shape, dtype, str(tensor.device), _layout(tensor), tensor.requires_grad)


def _layout(tensor: torch.Tensor) -> str:
    import torch

    if tensor.layout is not torch.strided or tensor.is_nested:
        return str(tensor.layout).removeprefix("torch.")
    if tensor.is_contiguous():
        return "contiguous"
    for rank, name in ((4, "channels_last"), (5, "channels_last_3d")):
        if tensor.dim() == rank and tensor.is_contiguous(memory_format=getattr(torch, name)):
            return name
    return "strided"


def autocast_dtype() -> str:
    """That of autocast on this thread; empty where it is off."""
    import torch

    for device in ("cuda", "cpu"):
        if torch.is_autocast_enabled(device):
            return str(torch.get_autocast_dtype(device)).removeprefix("torch.")
    return ""

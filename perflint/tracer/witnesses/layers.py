"""Calls of layers: the weights of attention, steps of recurrent cells, and the layout of convolutions."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from perflint.tracer.modules import STEPS, autocast_dtype
from perflint.tracer.witnesses.base import Witness, described, size_of

_PERFLINT = str(Path(__file__).parents[2])
HALF = ("float16", "bfloat16")


class Layers(Witness):
    """Watches the calls of some layers in the first recorded steps."""

    def start(self) -> None:
        self._steps = 0
        self._thread = threading.local()
        self._hooks = ExitStack()
        self._listens = False
        self._listen()

    def restart(self) -> None:
        self._steps = 0
        self._listen()

    def end_step(self) -> None:
        if self._steps < STEPS:
            self._note_precision()
            self._steps += 1
        if self._steps >= STEPS:
            self.stop()

    def stop(self) -> None:
        self._hooks.close()
        self._listens = False
        self._thread = threading.local()

    def _listen(self) -> None:
        if self._listens:
            return
        from torch.compiler import is_compiling
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        self._listens = True
        note = self._guarded(self._returned)

        def before(*_: Any) -> None:
            if not is_compiling():
                self._running.append(Counter())

        def after(module: Any, _: Any, output: Any) -> None:
            if not is_compiling():
                note(module, output, sys._getframe(1))

        def left(*_: Any) -> None:
            if not is_compiling() and self._running:
                inner = self._running.pop()
                if inner and self._running:
                    self._running[-1].update(inner)

        self._hooks.callback(register_module_forward_pre_hook(before).remove)
        self._hooks.callback(register_module_forward_hook(after).remove)
        # Also where `forward` raised.
        self._hooks.callback(register_module_forward_hook(left, always_call=True).remove)

    @property
    def _running(self) -> list[Counter[tuple[str, str]]]:
        """The convolutions of each module that runs on this thread, outermost first: by outcome and format."""
        if not hasattr(self._thread, "running"):
            self._thread.running = []
        running: list[Counter[tuple[str, str]]] = self._thread.running
        return running

    def _returned(self, module: Any, output: Any, frame: FrameType | None) -> None:
        from torch import nn

        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            self._convolved(output)
        elif isinstance(module, nn.RNNCellBase):
            state = output[0] if isinstance(output, tuple) else output
            self._note("cell.step", state, frame, f"a {type(module).__name__} with a state of {described(state)}")
        elif isinstance(module, nn.MultiheadAttention):
            self._attended(module, output, frame)
        elif isinstance(module, nn.Softmax):
            if output.dim() > 1 and module.dim in (-1, output.dim() - 1):
                self._note("softmax.module", output, frame, described(output))
        elif self._running and self._running[-1] and _is_called_from_outside(self, frame):
            self._held(self._running[-1], frame)

    def _note(self, fact: str, tensor: Any, frame: FrameType | None, detail: str) -> None:
        where = self.where(frame)
        if where is not None:
            self.observe(fact, where, bytes=size_of(tensor), detail=detail)

    def _attended(self, module: Any, output: Any, frame: FrameType | None) -> None:
        weights = output[1] if isinstance(output, tuple) and len(output) == 2 else None
        if weights is None:
            where = self.where(frame)
            if where is not None:
                self.observe("attention.no-weights", where)
            return
        fact = "attention.hooked" if module._forward_hooks else "attention.weights"
        self._note(fact, weights, frame, described(weights))

    def _convolved(self, output: Any) -> None:
        import torch

        if not self._running or output.dim() != 4:
            return
        first, last = output.is_contiguous(), output.is_contiguous(memory_format=torch.channels_last)
        dtype = str(output.dtype).removeprefix("torch.")
        if dtype == "float32":
            dtype = autocast_dtype() or dtype
        if output.device.type != "cuda":
            outcome = "on-host"
        elif dtype not in HALF:
            outcome = "other-dtype"
        elif first and last:
            # One channel, or one pixel: both layouts are the same.
            return
        else:
            outcome = "channels-last" if last else "channels-first"
        self._running[-1][outcome, dtype] += 1

    def _held(self, found: Counter[tuple[str, str]], frame: FrameType | None) -> None:
        """A module has run that holds convolutions."""
        where = self.where(frame)
        if where is None:
            return
        (outcome, dtype), count = min(found.items(), key=lambda item: (_ORDER.index(item[0][0]), -item[1]))
        detail = f"{count} of {sum(found.values())} in {dtype}"
        self.observe(f"convolution.{outcome}", where, detail=detail)

    def _note_precision(self) -> None:
        import torch

        now = self._recording.now(None)
        for backend, what in ((torch.backends.cuda.matmul, "products"), (torch.backends.cudnn, "convolutions")):
            allowed = _allows_tf32(backend, what)
            if allowed is not None:
                self.observe(f"float32.{'tf32' if allowed else 'full'}-{what}", now)


_ORDER = ("channels-first", "channels-last", "other-dtype", "on-host")
"""The outcomes of which the first that a module had is told."""


def _is_called_from_outside(witness: Witness, frame: FrameType | None) -> bool:
    """True if the program calls a module, and not another module of torch, such as `Sequential`."""
    while frame is not None and frame.f_code.co_filename.startswith((_PERFLINT, _module_file())):
        # Other witnesses have wrappers around the call.
        frame = frame.f_back
    return frame is not None and witness.locator.is_outside_torch(frame)


@cache
def _module_file() -> str:
    from torch.nn.modules import module

    return str(module.__file__)


def _allows_tf32(backend: Any, what: str) -> bool | None:
    """Whether a backend may compute in TF32; None if it does not say."""
    owner = getattr(backend, "conv", backend) if what == "convolutions" else backend
    precision = getattr(owner, "fp32_precision", "none")
    if precision != "none":
        return bool(precision == "tf32")
    try:
        return bool(backend.allow_tf32)
    except RuntimeError:
        # The program has set it by both of torch's interfaces.
        return None

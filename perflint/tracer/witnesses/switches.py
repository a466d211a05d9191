"""Switches of the whole process: the state in which the recorded steps ran, and debugging that was on in them."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from perflint.tracer.events import Place
from perflint.tracer.recording import Where
from perflint.tracer.replacing import replace
from perflint.tracer.witnesses.base import Call, Handler, Witness

_BLOCKING = "CUDA_LAUNCH_BLOCKING"


class Switches(Witness):
    """Reads the slow switches at the end of each recorded step. The facts are about the whole process."""

    _blocks: bool | None = None
    """Whether launches block; None until CUDA has started."""
    _called_cudnn = False

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        for name in ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
            yield torch, name, self._convolved

    def start(self) -> None:
        import torch

        self._undo = ExitStack()
        self._states: Counter[str] = Counter()
        cuda: Any = torch.cuda
        if cuda.is_initialized():
            self._blocks = _is_set()
            return
        original = cuda._lazy_init

        def noted() -> None:
            original()
            if self._blocks is None and cuda.is_initialized():
                self._blocks = _is_set()

        replace(self._undo, cuda, "_lazy_init", noted)

    def end_step(self) -> None:
        self._states.update(self._now())

    def restart(self) -> None:
        self._states.clear()

    def stop(self) -> None:
        self._undo.close()
        for fact, steps in self._states.items():
            for _ in range(steps):
                self.observe(fact, Where(None, 0))
        if self._called_cudnn:
            self.observe("convolution.called", Where(None, None))

    def _now(self) -> Iterator[str]:
        import torch

        cudnn = torch.backends.cudnn
        yield "cudnn.on" if cudnn.enabled else "cudnn.off"
        is_deterministic = torch.are_deterministic_algorithms_enabled()
        yield "algorithms.deterministic" if is_deterministic else "algorithms.any"
        if cudnn.benchmark:
            yield "cudnn.benchmark"
        if self._blocks is not None:
            yield "launches.blocking" if self._blocks else "launches.not-blocking"
        yield "float32.exact" if torch.get_float32_matmul_precision() == "highest" else "float32.tf32"

    def _convolved(self, call: Call) -> None:
        self._called_cudnn = True


def _is_set() -> bool:
    return os.environ.get(_BLOCKING, "") not in ("", "0")


class Debugging(Witness):
    """Watches debugging of autograd: backward passes under anomaly detection, checks of gradients, ranges."""

    _switch: Place | None = None
    """The place at which anomaly detection was last switched on."""

    def start(self) -> None:
        from torch.autograd import anomaly_mode, profiler

        self._undo = ExitStack()
        for switch in (anomaly_mode.set_detect_anomaly, anomaly_mode.detect_anomaly):
            self._note_construction(switch, self._guarded(self._switched))
        for ranges in (profiler.emit_nvtx, profiler.emit_itt):
            self._note_construction(ranges, self._guarded(self._ranged))

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        yield torch.Tensor, "backward", self._differentiated
        yield torch.autograd, "backward", self._differentiated
        yield torch.autograd, "grad", self._differentiated
        for name in ("gradcheck", "gradgradcheck"):
            yield torch.autograd, name, self._checked

    def stop(self) -> None:
        self._undo.close()

    def _note_construction(self, owner: Any, handle: Callable[..., None]) -> None:
        from torch.compiler import is_compiling

        original = owner.__init__

        def noted(thing: Any, *arguments: Any, **named: Any) -> None:
            original(thing, *arguments, **named)
            if not is_compiling():
                handle(thing, sys._getframe(1))

        noted.__wrapped__ = original  # type: ignore[attr-defined]
        replace(self._undo, owner, "__init__", noted)

    def _switched(self, _: Any, frame: Any) -> None:
        import torch

        where = self.where(frame)
        if where is not None and torch.is_anomaly_enabled():
            self._switch = where.place

    def _ranged(self, ranges: Any, frame: Any) -> None:
        if ranges.enabled and (where := self.where(frame)) is not None:
            self.observe("ranges.recorded", where)

    def _differentiated(self, call: Call) -> None:
        import torch

        now = self._recording.now(None)
        if not torch.is_anomaly_enabled():
            self.observe("backward.plain", now)
        elif torch.is_anomaly_check_nan_enabled():
            self.observe("anomaly.backward", Where(self._switch, now.step), ms=call.ms)
        else:
            self.observe("anomaly.unchecked", Where(self._switch, now.step))

    def _checked(self, call: Call) -> None:
        self.observe("gradients.checked", call.where, ms=call.ms)

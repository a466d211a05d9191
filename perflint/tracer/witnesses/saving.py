"""Files that `torch.save` writes, and full garbage collections: their time on the CPU."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from perflint.tracer.modules import tensors
from perflint.tracer.witnesses.base import Call, Handler, Witness, size_of

OLDEST = 2
"""The generation of a full garbage collection, which `gc.collect()` starts."""


class Saving(Witness):
    """Watches `torch.save`."""

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        yield torch, "save", self._saved

    def _saved(self, call: Call) -> None:
        saved = list(_saved_tensors(call.argument(0, "obj")))
        is_copied = any(each.device.type != "cpu" for each in saved)
        size = sum(map(size_of, saved))
        self.observe("save.from-device" if is_copied else "save.from-cpu", call.where, bytes=size, ms=call.ms)


class Collecting(Witness):
    """Watches the garbage collector of Python."""

    def start(self) -> None:
        self._began = 0.0
        self._heard = self._guarded(self._collected)
        gc.callbacks.append(self._hear)

    def stop(self) -> None:
        if self._hear in gc.callbacks:
            gc.callbacks.remove(self._hear)

    def _hear(self, phase: str, about: Mapping[str, int]) -> None:
        if about["generation"] == OLDEST:
            self._heard(phase, sys._getframe())

    def _collected(self, phase: str, frame: Any) -> None:
        if phase == "start":
            self._began = time.perf_counter()
            return
        where = self.where(frame)
        if where is not None and self._began:
            self.observe("gc.full", where, ms=(time.perf_counter() - self._began) * 1000)


def _saved_tensors(value: Any) -> Iterator[Any]:
    import torch

    yield from tensors(value.state_dict() if isinstance(value, torch.nn.Module) else value)

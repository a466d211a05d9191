"""Full collections of Python's garbage collector."""

from __future__ import annotations

import gc
import sys
import time
from types import FrameType
from typing import Any

from perflint.tracer.witnesses.base import Witness

_OLDEST = 2


class Collector(Witness):
    """Times the collections of the oldest generation, at the place that the program had reached."""

    def start(self) -> None:
        self._began: float | None = None
        note = self._guarded(self._collected)

        def called(phase: str, info: dict[str, Any]) -> None:
            if info["generation"] < _OLDEST:
                return
            if phase == "start":
                self._began = time.perf_counter()
            elif self._began is not None:
                ms = (time.perf_counter() - self._began) * 1000
                self._began = None
                note(sys._getframe(1), ms)

        self._called = called
        gc.callbacks.append(called)

    def stop(self) -> None:
        # The program may have cleared the list.
        if self._called in gc.callbacks:
            gc.callbacks.remove(self._called)

    def _collected(self, frame: FrameType | None, ms: float) -> None:
        where = self.where(frame)
        if where is not None:
            self.observe("collector.full", where, ms=ms)

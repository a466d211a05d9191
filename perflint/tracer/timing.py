"""Times steps on the GPU's own clock, without waiting for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any


class StepClock:
    """Records events on the current stream where steps begin and end, and reads them once they have passed.

    The host may be many steps ahead of the GPU: its clock would say how long launching takes.
    """

    def __init__(self, has_gpu: bool = True) -> None:
        self._has_gpu = has_gpu
        self._began: Any = None
        self._pending: deque[tuple[int, Any, Any]] = deque()

    def begin(self) -> None:
        """A step begins."""
        self._began = _event() if self._has_gpu else None

    def end(self, step: int) -> None:
        """The `step`-th of the recorded steps ends."""
        began, self._began = self._began, None
        if began is not None and (ended := _event()) is not None:
            self._pending.append((step, began, ended))

    def passed(self, wait: bool = False) -> Iterator[tuple[int, float]]:
        """The steps whose time is known by now, and their milliseconds; with `wait`, all."""
        while self._pending:
            step, began, ended = self._pending[0]
            if wait:
                ended.synchronize()
            elif not ended.query():
                return
            self._pending.popleft()
            yield step, began.elapsed_time(ended)


def _event() -> Any:
    """An event that has been recorded; None where no GPU is used or its work is being captured."""
    import torch

    cuda: Any = torch.cuda
    if not cuda.is_initialized() or cuda.is_current_stream_capturing():
        return None
    event = cuda.Event(enable_timing=True)
    event.record()
    return event

"""Runs torch's profiler for a few steps."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from perflint.tracer.events import Place
from perflint.tracer.gaps import Analysis, analyse
from perflint.tracer.kineto import END, OWN, STEP, SYNC
from perflint.tracer.syncs import quiet

EXTRA = 2
"""Steps that the profiler runs for and that do not count: its start disturbs the first, and what
follows the last one's syncs is in the next."""


class Timeline:
    """The profiler, with marks that tie its events to steps and to the user's lines."""

    def __init__(self) -> None:
        self._profile: Any = None
        self._own = threading.local()
        self.places: list[Place] = []
        self._numbers: dict[Place, int] = {}

    @staticmethod
    def can_run() -> bool:
        """True if there is a GPU in use, and no other profiler."""
        import torch

        cuda: Any = torch.cuda
        return cuda.is_initialized() and not torch.autograd.profiler._is_profiler_enabled

    @property
    def runs(self) -> bool:
        """True if the profiler is on."""
        return self._profile is not None

    def start(self) -> None:
        """Start the profiler. Raises RuntimeError where it cannot."""
        from torch.profiler import ProfilerActivity, profile

        with quiet():
            started = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
            started.start()
        self._profile = started

    @contextmanager
    def own(self) -> Iterator[None]:
        """Marks what the tracer itself does, which no step would take without it."""
        if not self.runs:
            yield
            return
        self._own.range = _range(OWN)
        self._own.range.__enter__()
        try:
            yield
        finally:
            self._end_own()

    def _end_own(self) -> None:
        """A range that the profiler does not see the end of, it complains about."""
        own, self._own.range = getattr(self._own, "range", None), None
        if own is not None:
            own.__exit__(None, None, None)

    def step(self, index: int) -> None:
        """A step begins."""
        _mark(f"{STEP}{index}")

    def sync(self, place: Place) -> None:
        """A place has just synchronised."""
        number = self._numbers.setdefault(place, len(self.places))
        if number == len(self.places):
            self.places.append(place)
        _mark(f"{SYNC}{number}")

    def abandon(self) -> None:
        """Stop, and forget what was seen."""
        self._end_own()
        profile, self._profile = self._profile, None
        with quiet():
            profile.stop()

    def stop(self, plain_ms: float | None = None, handling_us: float = 0.0) -> Analysis:
        """Stop, and say what the events show, as `analyse` does.

        Raises RuntimeError or OSError where they cannot be had.
        """
        _mark(END)
        self._end_own()
        profile, self._profile = self._profile, None
        with quiet():
            profile.stop()
        with tempfile.TemporaryDirectory(prefix="perflint-") as folder:
            path = Path(folder) / "events.json"
            profile.export_chrome_trace(str(path))
            with path.open(encoding="utf-8", errors="replace") as file:
                events = json.load(file)["traceEvents"]
        return analyse(events, self.places, plain_ms, handling_us)


def _mark(name: str) -> None:
    with _range(name):
        pass


def _range(name: str) -> AbstractContextManager[Any]:
    from torch.autograd.profiler import record_function

    return record_function(name)

"""Sees which lines of the user's code run.

Since Python 3.12 the interpreter reports a line once, until it is asked again for the code around it. That costs next
to nothing. Before, a trace function sees each line, so only the first recorded steps are watched.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from perflint.tracer.events import CandidateLine
from perflint.tracer.places import Locator

_monitoring: Any = getattr(sys, "monitoring", None)
"""The interpreter's, since Python 3.12."""
TRACED_SECONDS = 20.0
"""How long a trace function watches."""
SIMULATED_SECONDS = 120.0
"""The same in a simulation, whose steps are slow and are not timed."""
COUNTED_STEPS = 16
"""In how many recorded steps lines are counted: each of them asks the interpreter again."""
Line = tuple[str, int]


class Lines:
    """Collects the lines that run in some files."""

    def __init__(self, is_mine: Callable[[str], bool], simulated: bool = False) -> None:
        self.sees_all = False
        """True if each line that ran since `start` was seen."""
        self._is_mine = is_mine
        self._simulated = simulated
        self._seen: set[Line] = set()
        self._tool = -1
        self._codes: list[weakref.ref[CodeType]] = []
        """The code of the files that began to run."""
        self._until: float | None = None

    @property
    def is_watching(self) -> bool:
        """True if lines that run now are seen."""
        return self._tool >= 0 or time.monotonic() < (self._until or 0.0)

    def start(self) -> None:
        """Watch from here on."""
        if _monitoring is not None:
            self._start_monitoring()

    def renew(self) -> None:
        """Grant a trace function its time again: importing torch took it."""
        if self._until is not None:
            self._stop_tracing()
            self._start_tracing()

    def take(self) -> set[Line]:
        """The lines that ran since the last time; watches anew."""
        taken, self._seen = self._seen, set()
        if self._tool >= 0:
            self._ask_again()
        elif _monitoring is None and self._until is None and sys.gettrace() is None:
            self._start_tracing()
        return taken

    def stop(self) -> None:
        """Watch no longer."""
        if self._tool >= 0:
            self._clear()
            _monitoring.free_tool_id(self._tool)
            self._tool = -1
        self._stop_tracing()

    def _ask_again(self) -> None:
        """Have each line reported once more. `restart_events` would do that for all code, slowly."""
        self._set_local(0)
        self._set_local(_monitoring.events.LINE)

    def _set_local(self, events: int) -> None:
        self._codes = [reference for reference in self._codes if reference() is not None]
        for reference in self._codes:
            if (code := reference()) is not None:
                _monitoring.set_local_events(self._tool, code, events)

    def _clear(self) -> None:
        self._set_local(0)
        _monitoring.set_events(self._tool, 0)
        for event in (_monitoring.events.PY_START, _monitoring.events.LINE):
            _monitoring.register_callback(self._tool, event, None)

    def _start_monitoring(self) -> None:
        # 3 and 4 have no owner by convention, unlike those of debuggers, coverage, profilers and optimizers.
        free = [number for number in (3, 4) if _monitoring.get_tool(number) is None]
        if not free:
            return
        self.sees_all = True
        self._tool = free[0]
        _monitoring.use_tool_id(self._tool, "perflint")
        _monitoring.register_callback(self._tool, _monitoring.events.PY_START, self._started)
        _monitoring.register_callback(self._tool, _monitoring.events.LINE, self._line)
        _monitoring.set_events(self._tool, _monitoring.events.PY_START)
        for frame in self._running():
            self._started(frame.f_code, 0)

    def _started(self, code: CodeType, _: int) -> Any:
        if self._tool >= 0 and self._is_mine(code.co_filename):
            _monitoring.set_local_events(self._tool, code, _monitoring.events.LINE)
            self._codes.append(weakref.ref(code))
        return _monitoring.DISABLE

    def _line(self, code: CodeType, line: int) -> Any:
        self._seen.add((code.co_filename, line))
        return _monitoring.DISABLE

    def _running(self) -> Iterator[FrameType]:
        """The frames of this thread that are of the files."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._is_mine(frame.f_code.co_filename):
                yield frame
            frame = frame.f_back

    def _start_tracing(self) -> None:
        # Read here, because a benchmark sets the limit after the tracer has been made.
        self._until = time.monotonic() + (SIMULATED_SECONDS if self._simulated else TRACED_SECONDS)
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        for frame in self._running():
            frame.f_trace = self._trace

    def _stop_tracing(self) -> None:
        self._until = 0.0
        # Somebody else's since then is left alone.
        if sys.gettrace() == self._trace:
            sys.settrace(None)
        if threading.gettrace() == self._trace:
            threading.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if time.monotonic() > (self._until or 0.0):
            self._stop_tracing()
            return None
        if not self._is_mine(frame.f_code.co_filename):
            return None
        if event == "line":
            self._seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self._trace


class LineUse:
    """The lines that ran in recorded steps and outside, and in how many of the first recorded steps."""

    def __init__(self, lines: Lines) -> None:
        self.counted = 0
        """Recorded steps in which lines were counted."""
        self._lines = lines
        self._steps: Counter[Line] = Counter()
        self._in_steps: set[Line] = set()
        self._outside: set[Line] = set()
        self._unwatched: set[Line] = set()

    def take(self, in_steps: bool, watched: bool = True) -> None:
        """Note the lines that ran since the last time as those of recorded steps, or of others.

        `watched` is False if waits were not seen meanwhile.
        """
        into = self._in_steps if in_steps else self._outside if watched else self._unwatched
        into |= self._lines.take()

    def end_step(self) -> None:
        """Count the lines of a recorded step that ended."""
        if self.counted < COUNTED_STEPS and self._lines.is_watching:
            taken = self._lines.take()
            self._steps.update(taken)
            self._in_steps |= taken
            self.counted += 1

    def restart(self, keep: bool, watched: bool) -> None:
        """The steps so far were none; `keep` says whether their lines still count as those of recorded steps."""
        self.take(in_steps=keep and watched, watched=watched)
        if not keep:
            self._outside |= self._in_steps
            self._in_steps = set()
        self._steps.clear()
        self.counted = 0

    def records(self, locator: Locator) -> list[CandidateLine]:
        """The lines, by file."""
        found = []
        for place in sorted(self._in_steps | self._outside | self._unwatched):
            path, line = place
            locator.note_file(path)
            in_steps, watched = place in self._in_steps, place in self._in_steps | self._outside
            outside = place in self._outside | self._unwatched
            found.append(CandidateLine(locator.name(path), line, in_steps, outside, self._steps[place], watched))
        return found

"""The time of a profiled step without the idle time that the profiler adds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from perflint.tracer.kineto import Interval


class Clock:
    """Takes the idle time that the profiler adds out of a step.

    A moment in microseconds of the recording becomes one from the start of the step. Work lasts as long as it
    was recorded; of the time between, the share `kept` is left.
    """

    def __init__(self, start: float, span: float, work: Sequence[Interval], kept: float) -> None:
        self._moments, self._times = [start], [0.0]
        for piece in work:
            begin, end = max(piece.start, self._moments[-1]), min(piece.end, start + span)
            if begin < end:
                self._add(begin, kept)
                self._add(end, 1.0)
        self._add(start + span, kept)

    def _add(self, moment: float, kept: float) -> None:
        self._times.append(self._times[-1] + kept * (moment - self._moments[-1]))
        self._moments.append(moment)

    @property
    def span(self) -> float:
        """The length of the step."""
        return self._times[-1]

    def at(self, moment: float) -> float:
        """The corrected time of a moment of the recording."""
        place = min(max(bisect_right(self._moments, moment), 1), len(self._moments) - 1)
        begin, end = self._moments[place - 1], self._moments[place]
        part = min(max((moment - begin) / (end - begin), 0.0), 1.0) if end > begin else 0.0
        return self._times[place - 1] + part * (self._times[place] - self._times[place - 1])

"""The work of the CPU for the GPU in the steps of a profile, in an order that can be replayed.

Times are in microseconds. See `replay`, which plays it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from statistics import median
from typing import Any

from perflint.tracer.kineto import Events, Interval, Wait, Work

CALL_WEIGHT = 2.0
"""The cost of a runtime call for the profiler, relative to that of an operator."""
CALL_LIMIT = 5.0
"""Launches that take so many times as long as others wait for a full queue."""
_SKEW = 5.0
"""How far the clocks of the host and of the GPU may be apart."""
_UNEXPLAINED = 20.0
"""Work that starts so much later than its launch and its stream allow waits for another stream."""
_SPREAD = 0.25
"""How much further apart pieces of work are under the profiler, as measured on an H200."""
_LONG = 50.0
"""Another thread that does something meanwhile does not wait for this one."""


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of work on the GPU."""

    stream: int
    delay: float
    """From its launch to its start, on an idle stream."""
    gap: float
    """From the end of what is before it on its stream."""
    length: float
    after: int = 0
    """How many pieces of work back that is on another stream for whose end it waits; 0 for none."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The host launches or waits, or only time passes."""

    row: int
    """Threads that take turns are in one row; 0 is that of the steps."""
    before: float
    """The host's work since the moment before it, without the tracer's."""
    events: float
    """How many events were recorded in that time, by weight."""
    handled: int
    """How many syncs the tracer saw to in that time."""
    lasts: float = 0.0
    """The call itself; of a wait, what is left of it when there is nothing to wait for."""
    runs: tuple[Run, ...] = ()
    place: int | None = None
    """The index of the place that waits, or that the read belongs to."""
    waits_for: int = 0
    """How many pieces of work back that is for whose end it waits; 0 for none."""
    wakes: float = 0.0
    """From that end to the end of the wait."""


@dataclass(frozen=True, slots=True)
class _Point:
    """Something that becomes a moment: with neither work nor wait, only time."""

    time: Interval
    row: int
    work: tuple[Work, ...] = ()
    wait: Wait | None = None
    place: int | None = None


def moments_of(events: Events, waits: Sequence[Wait]) -> list[Moment]:
    """The moments from the second step to the end of the last, in the order of time."""
    points = sorted(_points(events, waits), key=lambda point: (point.time.start, point.time.end))
    measures = _Measures(events, points)
    began, ended = events.steps[1][0], events.steps[-1][0]
    now: dict[int, float] = {}
    found: list[Moment] = []
    for point in points:
        here = max(now.get(point.row, point.time.start), began)
        moment = measures.moment(point, here)
        if began <= point.time.start <= ended:
            found.append(moment)
        now[point.row] = max(here, point.time.end)
    return found


def _points(events: Events, waits: Sequence[Wait]) -> Iterator[_Point]:
    """Launches and waits, and where a wait or a read begins and ends."""
    rows = _rows(events, waits)
    by_launch: dict[int, list[Work]] = defaultdict(list)
    for work in events.work:
        by_launch[work.correlation].append(work)
    reads: dict[Any, list[tuple[Interval, int]]] = defaultdict(list)
    for wait in waits:
        row = rows.get(wait.thread, 0)
        read = _around(events.reads.get(wait.thread, []), wait.time)
        span = read or wait.time
        if wait.place is not None:
            yield _Point(Interval(span.start, span.start), row)
            if read is not None:
                reads[wait.thread].append((read, wait.place))
                yield _Point(Interval(read.end, read.end), row, place=wait.place)
        yield _Point(wait.time, row, wait=wait, place=wait.place)
    for thread, calls in events.calls.items():
        for call in calls:
            if works := by_launch.get(call.correlation):
                place = _place_at(reads[thread], call.time.start)
                yield _Point(call.time, rows.get(thread, 0), tuple(works), place=place)
    for start, _ in events.steps:
        yield _Point(Interval(start, start), 0)


def _place_at(reads: list[tuple[Interval, int]], when: float) -> int | None:
    """The place of the read that goes on at a time; reads are in the order of time."""
    at = bisect_right(reads, when, key=lambda read: read[0].start) - 1
    return reads[at][1] if at >= 0 and when < reads[at][0].end else None


def _around(reads: list[Interval], time: Interval) -> Interval | None:
    at = bisect_right(reads, time.start, key=attrgetter("start")) - 1
    return reads[at] if at >= 0 and reads[at].end >= time.end else None


def _rows(events: Events, waits: Sequence[Wait]) -> dict[Any, int]:
    """The row of each thread: those that do nothing while the main one waits, and let it do nothing, take turns."""
    starts = {thread: [call.time.start for call in calls] for thread, calls in events.calls.items()}
    found = {}
    for number, thread in enumerate(starts, 1):
        others = (events.main, thread), (thread, events.main)
        overlaps = (
            _any_between(starts.get(other, []), wait.time)
            for waiting, other in others
            for wait in waits
            if wait.thread == waiting and wait.time.end - wait.time.start > _LONG
        )
        found[thread] = 0 if thread == events.main or not any(overlaps) else number
    return found


def _any_between(starts: list[float], time: Interval) -> bool:
    return bisect_left(starts, time.end - _SKEW) > bisect_right(starts, time.start + _SKEW)


class _Measures:
    """Knows enough of a profile to measure its moments."""

    def __init__(self, events: Events, points: Sequence[_Point]) -> None:
        self._events = events
        self._called = sorted(call.time.start for calls in events.calls.values() for call in calls)
        self._marks = sorted(when for marks in events.marks.values() for when, _ in marks)
        self._before: dict[Work, Work | None] = {}
        last: dict[int, Work] = {}
        for work in events.work:
            self._before[work] = last.get(work.stream)
            last[work.stream] = work
        self._by_end = sorted(events.work, key=lambda work: work.time.end)
        self._launched: dict[Work, int] = {}
        lengths = [point.time.end - point.time.start for point in points if point.work]
        self._longest = CALL_LIMIT * median(lengths) if lengths else 0.0
        delays = sorted(point.work[0].time.start - point.time.start for point in points if self._finds_idle(point))
        # Of the shorter ones: others wait for something else.
        self._delay = max(delays[len(delays) // 4], 0.0) if delays else _SKEW
        gaps = [gap for work in events.work if 0 <= (gap := self._gap(work)) < _SKEW and not self._is_late(work)]
        self._least_gap = median(gaps) if gaps else 1.0 + _SPREAD

    def _gap(self, work: Work) -> float:
        before = self._before[work]
        return work.time.start - before.time.end if before is not None else -1.0

    def _is_late(self, work: Work) -> bool:
        """True if its stream was idle when it was launched."""
        before = self._before[work]
        launched = self._events.launches.get(work.correlation, work.time.start)
        return before is None or before.time.end < launched + _SKEW

    def _finds_idle(self, point: _Point) -> bool:
        return bool(point.work) and self._is_late(point.work[0])

    def moment(self, point: _Point, here: float) -> Moment:
        """The moment of a point, when its row was last busy until `here`."""
        start, end = point.time.start, point.time.end
        own = sum(time.end - time.start for time in _starting(self._events.own, here, start))
        events = _count(self._events.operators, here, start) + CALL_WEIGHT * _count(self._called, here, start)
        before, lasts = max(start - here - own, 0.0), max(end - max(start, here), 0.0)
        moment = Moment(point.row, before, events, _count(self._marks, here, start), place=point.place)
        if point.wait is not None:
            return self._waiting(moment, point.time, lasts)
        if point.work:
            return replace(moment, lasts=min(lasts, self._longest), runs=tuple(self._runs(point)))
        return moment

    def _waiting(self, moment: Moment, time: Interval, lasts: float) -> Moment:
        """Waits for the last work that had ended by then, also where it had ended before: it may not without others."""
        at = bisect_right(self._by_end, time.end + _SKEW, key=lambda work: work.time.end)
        target = next((work for work in reversed(self._by_end[max(at - 200, 0) : at]) if work in self._launched), None)
        if target is None:
            return replace(moment, lasts=lasts)
        wakes = min(max(time.end - target.time.end, 0.0), lasts)
        back = len(self._launched) - self._launched[target]
        return replace(moment, lasts=wakes, waits_for=back, wakes=wakes)

    def _runs(self, point: _Point) -> Iterator[Run]:
        launched = point.time.start
        for number, work in enumerate(point.work):
            before = self._before[work]
            is_late = self._is_late(work) and not number
            delay = 0.0 if number else work.time.start - launched if is_late else self._delay
            ready = max(launched + min(delay, self._delay), before.time.end if before is not None else launched)
            after = self._other_stream(work) if work.time.start - ready > _UNEXPLAINED else 0
            delay = min(delay, self._delay) if after else delay
            gap = self._least_gap if after or is_late else min(max(self._gap(work), 0.0), _UNEXPLAINED)
            length = work.time.end - work.time.start
            yield Run(work.stream, max(delay, 0.0), max(gap - _SPREAD, 0.0), length, after)
            self._launched[work] = len(self._launched)

    def _other_stream(self, work: Work) -> int:
        """How far back the work on another stream is that ended just before this one starts; 0 for none."""
        at = bisect_right(self._by_end, work.time.start + 1.0, key=lambda other: other.time.end)
        for other in reversed(self._by_end[max(at - 20, 0) : at]):
            near = work.time.start - other.time.end < _UNEXPLAINED
            if near and other.stream != work.stream and other in self._launched:
                return len(self._launched) - self._launched[other]
        return 0


def _count(times: list[float], start: float, end: float) -> int:
    return max(bisect_left(times, end) - bisect_left(times, start), 0)


def _starting(intervals: list[Interval], start: float, end: float) -> list[Interval]:
    first = bisect_left(intervals, start, key=attrgetter("start"))
    return intervals[first : max(bisect_left(intervals, end, key=attrgetter("start")), first)]

"""The GPU's idle time in the profiler's events, with its causes.

The host may be far ahead of the GPU, so a step on the GPU lasts from the first work that the step
launched to the first that the next one did. The first and the last step are left out: the profiler
disturbs the one, and the end of the other is not seen. Times are in microseconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from perflint.tracer.events import Activity, Gap, Idle, Kernel, Place, Step, SyncCost
from perflint.tracer.kineto import Events, Interval, merged, sort_out, waits
from perflint.tracer.replay import savings

ACTIVITY_LIMIT = 20_000
IDLE_LIMIT = 1_000
"""Stretches of idle time that are kept one by one, the longest."""
SHORTEST_US = 1.0
"""Shorter gaps are the time between two launches."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The results of a profile."""

    steps: tuple[Step, ...] = ()
    gaps: tuple[Gap, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    activities: tuple[Activity, ...] = ()
    idles: tuple[Idle, ...] = ()
    costs: tuple[SyncCost, ...] = ()


def analyse(
    events: Iterable[dict[str, Any]],
    places: Sequence[Place],
    plain_ms: float | None = None,
    handling_us: float = 0.0,
) -> Analysis:
    """Steps, gaps and work of a profile, and what syncs cost.

    `plain_ms` is what a step takes without the profiler, and `handling_us` what the tracer takes for a sync in it.
    """
    kept = sort_out(events)
    if len(kept.steps) < 4:
        return Analysis()
    busy = merged(work.time for work in kept.work)
    idle = [Interval(left.end, right.start) for left, right in pairwise(busy) if right.start - left.end >= SHORTEST_US]
    steps = kept.steps[1:-1]
    on_gpu = _on_gpu(kept, steps)
    gaps, causes = _gaps(kept, steps, on_gpu, idle, places)
    return Analysis(
        _steps(kept, on_gpu, busy),
        gaps,
        _kernels(kept, on_gpu),
        _activities(kept, on_gpu),
        _idles(idle, causes, on_gpu),
        _costs(kept, places, plain_ms, handling_us),
    )


def _costs(events: Events, places: Sequence[Place], plain_ms: float | None, handling_us: float) -> tuple[SyncCost, ...]:
    saved = savings(events, plain_ms * 1000 if plain_ms is not None else None, handling_us)
    return tuple(
        SyncCost(places[number], round(saving.share / 1000, 4), round(saving.alone / 1000, 4))
        for number, saving in saved.items()
        if number < len(places)
    )


def _on_gpu(events: Events, steps: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """When steps began on the GPU: with the first work that they launched on the busiest stream."""
    by_stream: Counter[int] = Counter()
    for work in events.work:
        by_stream[work.stream] += round(work.time.end - work.time.start)
    busiest = max(by_stream, key=by_stream.__getitem__, default=0)
    work_there = (work for work in events.work if work.stream == busiest)
    launched = sorted((events.launches.get(work.correlation, work.time.start), work.time.start) for work in work_there)
    first_from = list(accumulate((start for _, start in reversed(launched)), min))[::-1]
    found = []
    for start, index in steps:
        at = bisect_left(launched, (start, 0.0))
        found.append((max(first_from[at], start) if at < len(launched) else start, index))
    return found


def _steps(events: Events, steps: list[tuple[float, int]], busy: list[Interval]) -> tuple[Step, ...]:
    found = []
    starts = [work.time.start for work in events.work]
    for (start, index), (end, _) in pairwise(steps):
        kinds = Counter(work.kind for work in events.work[bisect_left(starts, start) : bisect_left(starts, end)])
        ms = round((end - start) / 1000, 4)
        busy_ms = round(_overlap(busy, Interval(start, end)) / 1000, 4)
        idle_ms = round(max(ms - busy_ms, 0.0), 4)
        found.append(Step(index, 1, ms, True, busy_ms, idle_ms, kinds["kernel"], kinds["copy"]))
    return tuple(found)


def _gaps(
    events: Events,
    on_host: list[tuple[float, int]],
    on_gpu: list[tuple[float, int]],
    idle: list[Interval],
    places: Sequence[Place],
) -> tuple[tuple[Gap, ...], list[tuple[str, Place | None]]]:
    """Each idle interval of the steps once: to the first wait that ended in it, else to the loader or the host.

    Also the cause and place of each interval.
    """
    sums: dict[tuple[int, str, int | None], list[float]] = {}
    all_waits = waits(events)
    taken: dict[int, int | None] = {}
    starts = [interval.start for interval in idle]

    def add(step: int | None, cause: str, place: int | None, *values: float) -> None:
        if step is not None:
            total = sums.setdefault((step, cause, place), [0.0] * 4)
            for number, value in enumerate((1.0, *values)):
                total[number] += value

    for number, wait in enumerate(all_waits):
        after = wait.time.end
        until = all_waits[number + 1].time.start if number + 1 < len(all_waits) else float("inf")
        at = bisect_right(starts, after) - 1
        first = 0.0
        if at >= 0 and idle[at].end > after and at not in taken:
            taken[at] = wait.place
            first = idle[at].end - idle[at].start
        rest = range(at + 1, bisect_left(starts, until))
        behind = sum(idle[later].end - idle[later].start for later in rest if idle[later].end <= until)
        add(_step_at(on_host, after), "sync", wait.place, first, wait.time.end - wait.time.start, behind)
    causes: list[tuple[str, Place | None]] = []
    for at, interval in enumerate(idle):
        cause = "sync"
        if at not in taken:
            cause = "loader" if _overlap(events.loads, interval) > (interval.end - interval.start) / 2 else "host"
            add(_step_at(on_gpu, interval.start), cause, None, interval.end - interval.start)
        causes.append((cause, _place(places, taken.get(at))))
    gaps = (
        Gap(step, cause, _place(places, place), int(total[0]), *(round(value / 1000, 4) for value in total[1:]))
        for (step, cause, place), total in sums.items()
    )
    return tuple(gaps), causes


def _place(places: Sequence[Place], number: int | None) -> Place | None:
    return places[number] if number is not None and number < len(places) else None


def _idles(
    idle: list[Interval], causes: list[tuple[str, Place | None]], steps: list[tuple[float, int]]
) -> tuple[Idle, ...]:
    """The longest idle intervals, in the order of time."""
    found: list[Idle] = []
    for interval, (cause, place) in zip(idle, causes, strict=True):
        step = _step_at(steps, interval.start)
        if step is not None:
            start, length = interval.start - steps[0][0], interval.end - interval.start
            found.append(Idle(step, round(start, 3), round(length, 3), cause, place))
    longest = sorted(found, key=lambda piece: -piece.us)[:IDLE_LIMIT]
    return tuple(sorted(longest, key=lambda piece: piece.start_us))


def _step_at(steps: list[tuple[float, int]], when: float) -> int | None:
    """The index of the step at a time; None before the first and after the last."""
    at = bisect_right(steps, when, key=lambda step: step[0]) - 1
    return steps[at][1] if 0 <= at < len(steps) - 1 else None


def _overlap(intervals: list[Interval], with_: Interval) -> float:
    near = intervals[: bisect_left(intervals, Interval(with_.end, with_.end))]
    return sum(max(min(time.end, with_.end) - max(time.start, with_.start), 0.0) for time in near)


def _kernels(events: Events, steps: list[tuple[float, int]]) -> tuple[Kernel, ...]:
    totals: dict[tuple[str, str], list[float]] = {}
    for work in events.work:
        if _step_at(steps, work.time.start) is not None:
            total = totals.setdefault((work.name, work.kind), [0, 0.0])
            total[0] += 1
            total[1] += (work.time.end - work.time.start) / 1000
    ordered = sorted(totals.items(), key=lambda item: -item[1][1])
    return tuple(Kernel(name, kind, int(count), round(ms, 4)) for (name, kind), (count, ms) in ordered)


def _activities(events: Events, steps: list[tuple[float, int]]) -> tuple[Activity, ...]:
    found: list[Activity] = []
    for work in events.work:
        step = _step_at(steps, work.time.start)
        if step is not None and len(found) < ACTIVITY_LIMIT:
            start, length = work.time.start - steps[0][0], work.time.end - work.time.start
            found.append(Activity(step, round(start, 3), round(length, 3), work.stream, work.kind, work.name))
    return tuple(found)

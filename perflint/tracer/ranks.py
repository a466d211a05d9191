"""Joins the traces of the ranks of one run: which one makes the others wait, and why.

Ranks meet in collectives. Who comes first waits inside them, on the GPU: its collectives take long. The
last to come finds all others there, so its collectives are the shortest. The ranks' clocks need not
agree for that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from perflint.tracer.events import Activity, Gap, Place, Step, Sync
from perflint.tracer.gaps import ACTIVITY_LIMIT
from perflint.tracer.kineto import Interval, merged
from perflint.tracer.trace import Trace

WORLD_LIMIT = 1 << 16
"""Ranks of one run: a foreign trace may name any number."""
WORTH_NAMING = 0.03
"""The share of a step that others must wait for a rank to be named."""


@dataclass(frozen=True, slots=True)
class Rank:
    """The times of a rank in a step: milliseconds, of which all but the first are means of the profiled steps."""

    rank: int
    step_ms: float | None
    """Without the profiler; None without steps."""
    own_ms: float | None = None
    """How long its GPU does anything but collectives; None without a timeline, as the following."""
    idle_ms: float | None = None
    """How long it does nothing."""
    collective_ms: float | None = None
    """How long collectives take, and in them the wait for other ranks."""
    exposed_ms: float | None = None
    """How long it does nothing but collectives."""


@dataclass(frozen=True, slots=True)
class Straggler:
    """The rank that the others wait for."""

    rank: int
    wait_ms: float
    """How much longer than in its own the others are in collectives, per step."""
    steps: int
    """In how many of the steps that were compared it was the last to come."""
    compared: int
    more_work_ms: float
    """How much more its GPU has to do than those of the others, per step."""
    more_idle_ms: float
    """How much more it idles."""
    cause: str = ""
    """Of most of its idle time, as in `Gap`; empty where it does not idle more than the others."""
    place: Place | None = None
    """Of the sync, where that is the cause."""


@dataclass(frozen=True, slots=True)
class UnevenSync:
    """A place that synchronises in recorded steps of some ranks only."""

    place: Place
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RankReport:
    """The ranks of a run, side by side."""

    ranks: tuple[Rank, ...]
    missing: tuple[int, ...]
    """Ranks without a trace."""
    straggler: Straggler | None
    uneven: tuple[UnevenSync, ...]


def are_ranks(traces: Sequence[Trace]) -> bool:
    """True if traces can be those of the ranks of one run: as many numbers of ranks as traces, of one world."""
    headers = [trace.header for trace in traces]
    worlds = {header.world_size for header in headers}
    numbers = {header.rank for header in headers}
    return len(numbers) == len(headers) > 1 and len(worlds) == 1 and WORLD_LIMIT >= max(worlds) > max(numbers)


def join_ranks(traces: Sequence[Trace]) -> RankReport:
    """Put the ranks of a run side by side. Raises ValueError where the traces cannot be those of one."""
    if not are_ranks(traces):
        raise ValueError("not the ranks of one run")
    ordered = sorted(traces, key=lambda trace: trace.header.rank)
    seen = {trace.header.rank for trace in ordered}
    world = max(trace.header.world_size for trace in ordered)
    times = {trace.header.rank: _times(trace) for trace in ordered}
    return RankReport(
        tuple(_rank(trace, times[trace.header.rank]) for trace in ordered),
        tuple(rank for rank in range(world) if rank not in seen),
        _straggler(ordered, times),
        _uneven(ordered),
    )


@dataclass(frozen=True, slots=True)
class _Times:
    """Of one profiled step, in milliseconds."""

    own: float
    idle: float
    collective: float
    exposed: float


def _times(trace: Trace) -> dict[int, _Times]:
    """By the index of the step."""
    activities = trace.of(Activity)
    by_step: dict[int, list[Activity]] = defaultdict(list)
    for activity in activities:
        by_step[activity.step].append(activity)
    if len(activities) >= ACTIVITY_LIMIT:
        # The last step is cut off.
        del by_step[max(by_step)]
    steps = {step.index: step for step in trace.of(Step) if step.profiled}
    return {index: _of_step(steps[index], by_step[index]) for index in sorted(by_step.keys() & steps.keys())}


def _of_step(step: Step, activities: Iterable[Activity]) -> _Times:
    spans: dict[bool, list[Interval]] = {True: [], False: []}
    for activity in activities:
        spans[is_collective(activity.name)].append(Interval(activity.start_us, activity.start_us + activity.us))
    own, collective = (_length(spans[kind]) for kind in (False, True))
    return _Times(own, step.idle_ms, collective, _length([*spans[True], *spans[False]]) - own)


def is_collective(name: str) -> bool:
    """True if a kernel is one in which ranks meet: NCCL's and RCCL's have that in their names."""
    return "nccl" in name.lower() or "rccl" in name.lower()


def _length(spans: list[Interval]) -> float:
    return sum(span.end - span.start for span in merged(sorted(spans))) / 1000


def _rank(trace: Trace, times: dict[int, _Times]) -> Rank:
    if not times:
        return Rank(trace.header.rank, trace.step_ms)
    rows = times.values()
    means = (fmean(getattr(row, name) for row in rows) for name in ("own", "idle", "collective", "exposed"))
    return Rank(trace.header.rank, trace.step_ms, *(round(value, 4) for value in means))


def _straggler(traces: Sequence[Trace], times: dict[int, dict[int, _Times]]) -> Straggler | None:
    """The rank with the shortest collectives in most steps, where that keeps the others long enough."""
    common = sorted(set[int].intersection(*(set(rows) for rows in times.values())))
    steps = [step for step in common if all(rows[step].collective for rows in times.values())]
    if not steps:
        return None
    last = Counter(min(times, key=lambda rank: times[rank][step].collective) for step in steps)
    ((rank, count),) = last.most_common(1)
    others = [other for other in times if other != rank]

    def more(name: str) -> float:
        """How much more than the median of the others."""
        return fmean(
            getattr(times[rank][step], name) - median(getattr(times[other][step], name) for other in others)
            for step in steps
        )

    wait = -more("collective")
    step_ms = median(trace.step_ms or 0.0 for trace in traces)
    if count * 2 <= len(steps) or wait < WORTH_NAMING * step_ms:
        return None
    more_work, more_idle = more("own"), more("idle")
    cause, place = "", None
    if more_idle > max(more_work, 0.0):
        cause, place = _main_cause(next(trace for trace in traces if trace.header.rank == rank))
    figures = (round(value, 4) for value in (wait, more_work, more_idle))
    wait, more_work, more_idle = figures
    return Straggler(rank, wait, count, len(steps), more_work, more_idle, cause, place)


def _main_cause(trace: Trace) -> tuple[str, Place | None]:
    sums: dict[tuple[str, Place | None], float] = defaultdict(float)
    for gap in trace.of(Gap):
        sums[gap.cause, gap.place] += gap.ms + gap.behind_ms
    return max(sums, key=sums.__getitem__, default=("", None))


def _uneven(traces: Sequence[Trace]) -> tuple[UnevenSync, ...]:
    """The places of syncs that not every rank makes, the most lopsided first."""
    ranks: dict[Place, list[int]] = defaultdict(list)
    for trace in traces:
        for place in dict.fromkeys(sync.place for sync in trace.of(Sync) if sync.hits.steps and not sync.origin):
            ranks[place].append(trace.header.rank)
    some = [UnevenSync(place, tuple(found)) for place, found in ranks.items() if len(found) < len(traces)]
    return tuple(sorted(some, key=lambda sync: (len(sync.ranks), sync.place.file, sync.place.line)))

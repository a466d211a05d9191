"""The figures of the report for one trace. Times are in milliseconds per step."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perflint.tracer.events import Activity, Gap, Place, Step, Sync, SyncCost
from perflint.tracer.kineto import Interval, merged
from perflint.tracer.ranks import is_collective
from perflint.tracer.trace import Trace


@dataclass(frozen=True, slots=True)
class Line:
    """A line of code at which the CPU waited for the GPU in recorded steps."""

    file: str
    line: int
    cost_ms: float | None
    """The cost of its syncs per step; None without a timeline."""
    per_step: float
    """Syncs per step."""
    syncs: tuple[Sync, ...]
    costs: dict[Place, float]
    """The cost of each of its expressions, if known."""
    alone: dict[Place, float]
    """The time that a step saves if only this wait is removed, as far as that is known."""
    steps: int | None
    """The number of recorded steps in which it waited, if it did not in all of them; else None."""
    is_rare: bool
    """True if it waited in less than half of the recorded steps."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Idle time by its cause: these and the busy time are a step."""

    sync_ms: float
    loader_ms: float
    host_ms: float


@dataclass(frozen=True, slots=True)
class Facts:
    """The figures of a trace."""

    trace: Trace
    step_ms: float | None
    """None without steps, and without a GPU, whose times would mean nothing."""
    busy_ms: float | None
    """None without a timeline, as the following."""
    idle_ms: float | None
    idle: Idle | None
    collective_ms: float
    """How much of the busy time the GPU does nothing but collectives, and waits in them for other ranks."""
    lines: tuple[Line, ...]
    """Own lines that synchronized without being allowed, the most expensive first."""
    allowed: tuple[Line, ...]
    """Lines within `perflint.allow_sync`."""

    @property
    def syncs_per_step(self) -> float:
        """The number of waits in a step that nothing allows. Lines that wait in few steps do not count."""
        return sum(line.per_step for line in self.lines if not line.is_rare)

    @property
    def has_costs(self) -> bool:
        """True if there is a timeline."""
        return self.idle is not None


def gather(trace: Trace) -> Facts:
    """The figures of a trace, whatever it holds."""
    profiled = [step for step in trace.of(Step) if step.profiled]
    costs = trace.costs
    syncs = [sync for sync in trace.of(Sync) if sync.hits.steps and not sync.origin]
    busy_ms = idle_ms = idle = None
    if profiled:
        busy_ms = finite(sum(step.busy_ms for step in profiled) / len(profiled))
        idle_ms = finite(trace.idle_share * sum(step.idle_ms for step in profiled) / len(profiled))
        idle = _idle(trace, idle_ms)
    collective_ms = min(_collective_ms(trace), busy_ms or 0.0)
    return Facts(
        trace,
        None if trace.step_ms is None or trace.header.simulated else finite(trace.step_ms),
        busy_ms,
        idle_ms,
        idle,
        collective_ms,
        _lines((sync for sync in syncs if not sync.allowed), costs, trace),
        _lines((sync for sync in syncs if sync.allowed), costs, trace),
    )


def _idle(trace: Trace, idle_ms: float) -> Idle:
    """The idle time that waits cost, and the time that missing data costs; the rest is due to a late CPU."""
    scale = trace.idle_share / max(trace.profiled_steps, 1)
    gaps = trace.of(Gap)
    replayed = trace.of(SyncCost)
    waits = scale * sum(gap.cost_ms for gap in gaps if gap.cause == "sync")
    sync = min(max(finite(sum(cost.ms for cost in replayed) if replayed else waits), 0.0), idle_ms)
    loader = min(finite(scale * sum(gap.ms for gap in gaps if gap.cause == "loader")), idle_ms - sync)
    return Idle(sync, loader, max(idle_ms - sync - loader, 0.0))


def _collective_ms(trace: Trace) -> float:
    """The mean of the profiled steps of which the trace holds all work."""
    work: defaultdict[int, list[Activity]] = defaultdict(list)
    for activity in trace.of(Activity):
        work[activity.step].append(activity)
    whole = [step.index for step in trace.of(Step) if step.profiled and is_whole(step, work[step.index])]
    times = [alone_us(work[index]) / 1000 for index in whole]
    return finite(sum(times) / len(times)) if times else 0.0


def is_whole(step: Step, work: Sequence[Activity]) -> bool:
    """True if the trace holds every piece of work of a step."""
    return sum(piece.kind == "kernel" for piece in work) >= step.kernels


def alone_us(work: Sequence[Activity]) -> float:
    """How long of some work there are collectives and nothing else, in microseconds."""
    own = [piece for piece in work if not is_collective(piece.name)]
    return 0.0 if len(own) == len(work) else _length(union(work)) - _length(union(own))


def union(pieces: Iterable[Activity]) -> list[Interval]:
    """When at least one of some pieces of work ran."""
    spans = (Interval(finite(piece.start_us), finite(piece.start_us + piece.us)) for piece in pieces)
    return merged(sorted(spans))


def _length(spans: Iterable[Interval]) -> float:
    return sum(max(span.end - span.start, 0.0) for span in spans)


def _lines(syncs: Iterable[Sync], costs: dict[Place, float] | None, trace: Trace) -> tuple[Line, ...]:
    by_line: defaultdict[tuple[str, int], list[Sync]] = defaultdict(list)
    for sync in syncs:
        by_line[sync.place.file, sync.place.line].append(sync)
    steps = max(trace.header.steps, 1)
    alone = {cost.place: cost.alone_ms for cost in trace.of(SyncCost)}
    found = []
    for (file, line), there in by_line.items():
        places = dict.fromkeys(sync.place for sync in there)
        own = {} if costs is None else {place: finite(costs.get(place, 0.0)) for place in places}
        cost = None if costs is None else sum(own.values())
        per_step = sum(sync.hits.steps for sync in there) / steps
        lone = {place: finite(alone[place]) for place in places if place in alone}
        often = trace.steps_with(there)
        some = often if often is not None and often < steps else None
        is_rare = some is not None and 2 * some < steps
        found.append(Line(file, line, cost, per_step, tuple(there), own, lone, some, is_rare))
    return tuple(sorted(found, key=_most_costly_first))


def _most_costly_first(line: Line) -> tuple[object, ...]:
    """A sort key: costs first; without costs, lines that wait in most steps, then the number of waits."""
    return -(line.cost_ms or 0.0), line.is_rare, -line.per_step, line.file, line.line


def share(part: float | None, whole: float | None) -> float | None:
    """A part of a whole, from 0 to 1; None where one is not known."""
    if part is None or whole is None or whole <= 0:
        return None
    return min(max(part / whole, 0.0), 1.0)


def finite(value: float) -> float:
    """A number that a picture can be drawn of: what a foreign trace holds may be of any size."""
    return min(max(value, -1e9), 1e9) if math.isfinite(value) else 0.0


def most_common(names: Iterable[str]) -> str:
    """The commonest of some names; empty without any."""
    return next((name for name, _ in Counter(names).most_common(1)), "")

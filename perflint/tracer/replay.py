"""Plays a profile again without some of its waits: what would a step take without a sync?

The host is a row of moments, launches and waits, with its own work between them. A piece of work on the
GPU starts when it has been launched and what is before it on its stream has ended; a wait ends with the
work that it waited for. Played as recorded, that gives the steps as recorded; without the waits of a
place the host runs ahead, as far as the others let it.

A profile holds two things that the program does not: the tracer's own work, which is left out, and what
each event costs the profiler, which is fitted so that a step takes as long as one without the profiler.
Times are in microseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perflint.tracer.kineto import Events, waits
from perflint.tracer.moments import CALL_WEIGHT, Moment, moments_of

ROUNDS = 3
"""The steps are played so often, one after another; the last time counts, when all leads have built up."""
PLACE_LIMIT = 16
"""Places that are left out one by one: those that waited longest. The others are left out together."""
PLAYED = 4_000_000
"""Moments that are played in all, some seconds of work: where there are many, fewer places are left out one by one."""
FITS = 12
"""Halvings of what a fitted value may be."""
LEAST_SHARE = 0.15
"""Of the host's time between two moments that is its own, however many events there were."""
COST_LIMIT = 20.0
"""An event costs the profiler no more."""
SLOWER_LIMIT = 1.15
"""Without the profiler the host can be slower, as it wakes later from waits, but by no more than this."""
CLOSE = 1.002
"""A step that is this much longer or shorter is as good: it depends on the GPU alone."""


@dataclass(frozen=True, slots=True)
class Host:
    """How fast the host is without the profiler."""

    event_cost: float = 0.0
    """The cost of an event for the profiler."""
    slower: float = 1.0
    handling: float = 0.0
    """The time that the tracer takes to handle a sync."""


@dataclass(frozen=True, slots=True)
class Saving:
    """The time that a step saves without the syncs of a place."""

    share: float
    """Of what it saves without all of them: where two wait for the same work, each has half."""
    alone: float
    """The time that is saved if only these syncs are removed."""


def savings(events: Events, plain: float | None = None, handling: float = 0.0) -> dict[int, Saving]:
    """The time that a step saves without the syncs of each place, by its number; empty for too few steps.

    `plain` is the time of a step without the profiler, in which the tracer takes `handling` for each sync.
    """
    if len(events.steps) < 4:
        return {}
    all_waits = waits(events)
    moments = moments_of(events, all_waits)
    steps = len(events.steps) - 2
    host = fitted(moments, steps, plain, handling)
    waited: dict[int, float] = defaultdict(float)
    for wait in all_waits:
        if wait.place is not None:
            waited[wait.place] += wait.time.end - wait.time.start
    present = {moment.place for moment in moments}
    ordered = sorted((place for place in waited if place in present), key=lambda place: -waited[place])
    limit = min(max((PLAYED // (ROUNDS * max(len(moments), 1)) - FITS) // 2, 1), PLACE_LIMIT)
    groups = [frozenset([place]) for place in ordered[:limit]]
    if rest := frozenset(ordered[limit:]):
        groups.append(rest)
    return _shared(groups, waited, plain, lambda left_out: step_time(moments, steps, host, left_out))


def _shared(
    groups: Sequence[frozenset[int]],
    waited: Mapping[int, float],
    plain: float | None,
    time: Callable[[frozenset[int]], float],
) -> dict[int, Saving]:
    """Divide what all save by the mean of what each saves as the first and as the last to go."""
    everything = frozenset[int]().union(*groups)
    with_all, with_none = time(frozenset()), time(everything)
    replayed = max(with_all - with_none, 0.0)
    # Where nothing fits, as a call is many times slower under the profiler: a step saves no more than it takes.
    total = replayed if plain is None else min(replayed, max(plain - with_none, 0.0))
    alone = [max(with_all - time(group), 0.0) for group in groups]
    last = [max(time(everything - group) - with_none, 0.0) for group in groups]
    means = [(first + second) / 2 for first, second in zip(alone, last, strict=True)]
    scale = total / sum(means) if sum(means) else 0.0
    found = {}
    for group, mean, saved in zip(groups, means, alone, strict=True):
        whole = sum(waited[place] for place in group)
        for place in group:
            part = waited[place] / whole if whole else 1 / len(group)
            found[place] = Saving(mean * scale * part, min(saved, total) * part)
    return found


def fitted(moments: Sequence[Moment], steps: int, plain: float | None, handling: float) -> Host:
    """The host with which a step takes `plain`, as near as can be."""
    if plain is None:
        return Host()

    def time(cost: float, slower: float) -> float:
        return step_time(moments, steps, Host(cost, slower, handling))

    if time(0.0, 1.0) > plain:
        goal = max(plain, CLOSE * time(COST_LIMIT, 1.0))
        return Host(_least(lambda cost: time(cost, 1.0) <= goal, 0.0, COST_LIMIT))
    goal = min(plain, time(0.0, SLOWER_LIMIT) / CLOSE)
    return Host(0.0, _least(lambda slower: time(0.0, slower) >= goal, 1.0, SLOWER_LIMIT))


def _least(is_enough: Callable[[float], bool], low: float, high: float) -> float:
    """The least value that is enough."""
    for _ in range(FITS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def step_time(moments: Sequence[Moment], steps: int, host: Host, left_out: frozenset[int] = frozenset()) -> float:
    """The duration of a step without the waits of some places."""
    now: dict[int, float] = defaultdict(float)
    free: dict[int, float] = defaultdict(float)
    ends: list[float] = []
    before, ended = 0.0, 0.0
    for _ in range(ROUNDS):
        for moment in moments:
            if moment.place in left_out:
                # It is counted all the same, so that what others wait for is as far back as it was.
                ends += [0.0] * len(moment.runs)
                continue
            own = max(moment.before - host.event_cost * moment.events, LEAST_SHARE * moment.before)
            call = max(1 - host.event_cost * CALL_WEIGHT / moment.lasts, LEAST_SHARE) if moment.lasts else 1.0
            time = now[moment.row] + own * host.slower + host.handling * moment.handled
            for run in moment.runs:
                start = max(time + run.delay, free[run.stream] + run.gap)
                if 0 < run.after <= len(ends):
                    start = max(start, ends[-run.after])
                free[run.stream] = start + run.length
                ends.append(free[run.stream])
            time += moment.lasts * call
            if 0 < moment.waits_for <= len(ends):
                time = max(time, ends[-moment.waits_for] + moment.wakes * call)
            now[moment.row] = time
        before, ended = ended, max(now[0], max(free.values(), default=0.0))
    return (ended - before) / steps

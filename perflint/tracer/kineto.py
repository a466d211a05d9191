"""The profiler's events, sorted out.

They are those of Kineto's Chrome traces, with marks of the tracer among them: `perflint:step:N` where
step N begins, `perflint:end` where the last one ends, `perflint:sync:N` just after the N-th place
synchronised, and around `perflint:own` what the tracer itself does. Times are in microseconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

STEP, END, SYNC, OWN = "perflint:step:", "perflint:end", "perflint:sync:", "perflint:own"
NAME_LIMIT = 300
_KINDS = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "set"}
_LAUNCHES = ("cuda_runtime", "cuda_driver")
_FREES = frozenset({"cudaFree", "cudaFreeHost", "hipFree", "hipHostFree"})
"""The driver frees when the GPU has done all its work."""
_ADJACENT_US = 50.0


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """A stretch of time."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Work:
    """Something that the GPU did."""

    time: Interval
    kind: str
    name: str
    stream: int
    correlation: int


@dataclass(frozen=True, slots=True)
class Wait:
    """The host waited for the GPU."""

    time: Interval
    place: int | None
    """The number of the place, where a mark names it."""


@dataclass(slots=True)
class Events:
    """What of a profile is looked at, by kind, each in the order of time."""

    work: list[Work] = field(default_factory=list)
    """On the GPU."""
    calls: dict[Any, list[tuple[Interval, str]]] = field(default_factory=lambda: defaultdict(list))
    """Of the runtime, by thread."""
    marks: dict[Any, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))
    """Of syncs, by thread: when, number of the place."""
    loads: list[Interval] = field(default_factory=list)
    steps: list[tuple[float, int]] = field(default_factory=list)
    """When each began on the host, its index; the last is the end of all."""
    launches: dict[int, float] = field(default_factory=dict)
    """When a call of the runtime began, by its correlation."""


def sort_out(events: Iterable[dict[str, Any]]) -> Events:
    """Keep what is of use, by kind."""
    kept = Events()
    for event in events:
        if event.get("ph") != "X":
            continue
        category, name = event.get("cat", ""), str(event.get("name", ""))
        start = float(event["ts"])
        time = Interval(start, start + float(event.get("dur", 0)))
        if category in _KINDS:
            stream, correlation = (_number(event, key) for key in ("stream", "correlation"))
            kept.work.append(Work(time, _KINDS[category], name[:NAME_LIMIT], stream, correlation))
        elif category in _LAUNCHES:
            kept.calls[event.get("tid")].append((time, name))
            kept.launches[_number(event, "correlation")] = start
        elif category in ("user_annotation", "cpu_op"):
            _sort_annotation(kept, name, time, event.get("tid"))
    kept.work.sort(key=lambda work: work.time)
    kept.steps.sort()
    kept.loads.sort()
    for calls in kept.calls.values():
        calls.sort()
    for marks in kept.marks.values():
        marks.sort(key=lambda mark: mark[0])
    return kept


def _number(event: dict[str, Any], key: str) -> int:
    value = event.get("args", {}).get(key, 0)
    return value if isinstance(value, int) else 0


def _sort_annotation(kept: Events, name: str, time: Interval, thread: Any) -> None:
    if name.startswith(STEP):
        kept.steps.append((time.start, int(name.removeprefix(STEP))))
    elif name == END:
        kept.steps.append((time.start, -1))
    elif name.startswith(SYNC):
        kept.marks[thread].append((time.start, int(name.removeprefix(SYNC))))
    elif name.startswith("enumerate(DataLoader)"):
        kept.loads.append(time)


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The union of intervals that are in the order of their starts."""
    union: list[Interval] = []
    for interval in intervals:
        if union and interval.start <= union[-1].end:
            union[-1] = Interval(union[-1].start, max(union[-1].end, interval.end))
        else:
            union.append(interval)
    return union


def waits(events: Events) -> list[Wait]:
    """When the host waited, and for which place: the marks of a call follow its waits, in their order."""
    found: list[Wait] = []
    for thread in events.calls.keys() | events.marks.keys():
        pending = _blocking(events.calls.get(thread, []))
        marks = events.marks.get(thread, [])
        taken = 0
        at = 0
        while at < len(marks):
            ready = bisect_right(pending, marks[at][0], key=lambda time: time.end)
            group = [mark for mark in marks[at:] if _ready(pending, mark[0]) == ready]
            own = pending[max(taken, ready - len(group)) : ready]
            found += [Wait(time, None) for time in pending[taken : ready - len(own)]]
            found += [Wait(time, number) for time, (_, number) in zip(own, group[len(group) - len(own) :], strict=True)]
            # A mark without a wait of its own: the driver's call has another name.
            found += [Wait(Interval(when, when), number) for when, number in group[: len(group) - len(own)]]
            taken, at = ready, at + len(group)
        found += [Wait(time, None) for time in pending[taken:]]
    return sorted(found, key=lambda wait: wait.time.end)


def _ready(pending: list[Interval], when: float) -> int:
    return bisect_right(pending, when, key=lambda time: time.end)


def _blocking(calls: list[tuple[Interval, str]]) -> list[Interval]:
    """The calls that wait.

    A copy just before belongs to it: one of pageable memory blocks by itself. So does freeing just
    before freeing: `torch.cuda.empty_cache` frees one segment after the other.
    """
    found: list[Interval] = []
    before = (Interval(float("-inf"), float("-inf")), "")
    for time, name in calls:
        follows = time.start - before[0].end < _ADJACENT_US
        if name in _FREES:
            if follows and before[1] in _FREES:
                found[-1] = Interval(found[-1].start, time.end)
            else:
                found.append(time)
        elif "Synchronize" in name or (name.startswith(("cudaMemcpy", "hipMemcpy")) and "Async" not in name):
            start = before[0].start if follows and "Memcpy" in before[1] else time.start
            found.append(Interval(start, time.end))
        before = (time, name)
    return found

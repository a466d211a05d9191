"""The profiler's events, sorted out.

They are those of Kineto's Chrome traces, with marks of the tracer among them: `perflint:step:N` where
step N begins, `perflint:end` where the last one ends, `perflint:sync:N` just after the N-th place
synchronised, and around `perflint:own` what the tracer itself does. Times are in microseconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

STEP, END, SYNC, OWN = "perflint:step:", "perflint:end", "perflint:sync:", "perflint:own"
NAME_LIMIT = 300
_KINDS = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "set"}
_LAUNCHES = ("cuda_runtime", "cuda_driver")
_FREES = frozenset({"cudaFree", "cudaFreeHost", "hipFree", "hipHostFree"})
"""The driver frees when the GPU has done all its work."""
READS = frozenset({"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"})
_ADJACENT_US = 50.0
_LATE = 256
"""How many waits may pass before another thread tells of them."""


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


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """A call of the runtime."""

    time: Interval
    name: str
    correlation: int
    """The number that the work has which it launches."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The host waited for the GPU."""

    time: Interval
    place: int | None
    """The number of the place, where a mark names it."""
    thread: Any = None


@dataclass(slots=True)
class Events:
    """The relevant parts of a profile, by kind, each in the order of time."""

    work: list[Work] = field(default_factory=list)
    """On the GPU."""
    calls: dict[Any, list[Call]] = field(default_factory=lambda: defaultdict(list))
    """Of the runtime, by thread."""
    operators: list[float] = field(default_factory=list)
    """When torch's operators and the marked ranges began."""
    reads: dict[Any, list[Interval]] = field(default_factory=lambda: defaultdict(list))
    """Operators that do nothing but read a number, by thread."""
    own: list[Interval] = field(default_factory=list)
    """The tracer's own work."""
    main: Any = None
    """The thread whose steps they are."""
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
            call = Call(time, name, _number(event, "correlation"))
            kept.calls[event.get("tid")].append(call)
            kept.launches[call.correlation] = start
        elif category in ("user_annotation", "cpu_op"):
            kept.operators.append(start)
            _sort_annotation(kept, name, time, event.get("tid"))
    kept.work.sort(key=lambda work: work.time)
    kept.steps.sort()
    kept.loads.sort()
    kept.operators.sort()
    kept.own.sort()
    for thread, reads in kept.reads.items():
        kept.reads[thread] = merged(sorted(reads))
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
        kept.main = thread
    elif name == END:
        kept.steps.append((time.start, -1))
    elif name.startswith(SYNC):
        kept.marks[thread].append((time.start, int(name.removeprefix(SYNC))))
    elif name == OWN:
        kept.own.append(time)
    elif name.startswith("enumerate(DataLoader)"):
        kept.loads.append(time)
    elif name in READS:
        kept.reads[thread].append(time)


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
        waited = _waits(blocking(events.calls.get(thread, [])), events.marks.get(thread, []))
        found += [Wait(time, place, thread) for time, place in waited]
    return _across(sorted(found, key=lambda wait: wait.time.end))


def _across(found: list[Wait]) -> list[Wait]:
    """Give marks without a wait of their own those of other threads.

    What the thread of a backward pass warns of, the one that called `backward` says when it is done.
    """
    latest: dict[Any, float] = {}
    nobodys: deque[int] = deque(maxlen=_LATE)
    kept: dict[int, Wait] = {}
    for number, wait in enumerate(found):
        began = latest.get(wait.thread, float("-inf"))
        if wait.place is None:
            nobodys.append(number)
        elif wait.time.start == wait.time.end:
            others = (at for at in nobodys if found[at].thread != wait.thread and found[at].time.start >= began)
            at = next(others, None)
            if at is not None:
                nobodys.remove(at)
                kept[at] = replace(found[at], place=wait.place)
                continue
        if wait.place is not None:
            latest[wait.thread] = wait.time.end
        kept[number] = wait
    return [kept[number] for number in sorted(kept)]


def _waits(pending: list[Interval], marks: list[tuple[float, int]]) -> Iterator[tuple[Interval, int | None]]:
    """The waits of one thread and their places."""
    taken = 0
    at = 0
    while at < len(marks):
        ready = _ready(pending, marks[at][0])
        # Those before the next wait ends.
        until = pending[ready].end if ready < len(pending) else float("inf")
        group = [number for _, number in marks[at : bisect_left(marks, until, key=lambda mark: mark[0])]]
        own = pending[max(taken, ready - len(group)) : ready]
        without = len(group) - len(own)
        yield from ((time, None) for time in pending[taken : ready - len(own)])
        yield from zip(own, group[without:], strict=True)
        # A mark without a wait of its own: the driver's call has another name.
        yield from ((Interval(when, when), number) for when, number in marks[at : at + without])
        taken, at = ready, at + len(group)
    yield from ((time, None) for time in pending[taken:])


def _ready(pending: list[Interval], when: float) -> int:
    return bisect_right(pending, when, key=lambda time: time.end)


def blocking(calls: list[Call]) -> list[Interval]:
    """The calls that wait.

    A copy just before belongs to it: one of pageable memory blocks by itself. So does freeing just
    before freeing: `torch.cuda.empty_cache` frees one segment after the other.
    """
    found: list[Interval] = []
    before = Call(Interval(float("-inf"), float("-inf")), "", 0)
    for call in calls:
        time, name = call.time, call.name
        follows = time.start - before.time.end < _ADJACENT_US
        if name in _FREES:
            if follows and before.name in _FREES:
                found[-1] = Interval(found[-1].start, time.end)
            else:
                found.append(time)
        elif "Synchronize" in name or (name.startswith(("cudaMemcpy", "hipMemcpy")) and "Async" not in name):
            start = before.time.start if follows and "Memcpy" in before.name else time.start
            found.append(Interval(start, time.end))
        before = call
    return found

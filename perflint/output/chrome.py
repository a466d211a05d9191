"""Traces in the format of Chrome's trace viewer, which Perfetto opens.

Times are in microseconds. A trace is a process, and each stream of its GPU a thread; steps and idle
time have threads of their own. Only profiled steps have places in time.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TextIO

from perflint.output.terminal import printable
from perflint.tracer.events import Activity, Gap, Idle, Place, Step
from perflint.tracer.kineto import Interval, merged
from perflint.tracer.trace import Trace

Event = dict[str, Any]
_STEPS, _IDLE, _STREAMS = 0, 1, 2
"""The first threads of a process."""
_THREADS = 1000
"""Numbers of threads of a process: Perfetto would take equal ones of two processes for one."""


def write_chrome(traces: Sequence[tuple[str, Trace]], out: TextIO) -> int:
    """Write traces, each with the name of its file, as one document. Returns how many pieces of time it shows."""
    shown = 0
    out.write('{"displayTimeUnit": "ms", "traceEvents": [')
    separator = "\n"
    for number, (name, trace) in enumerate(traces):
        for event in chrome_events(trace, name, number + 1):
            out.write(separator + json.dumps(event, allow_nan=False))
            separator = ",\n"
            shown += event["ph"] == "X"
    out.write("\n]}\n")
    return shown


def chrome_events(trace: Trace, name: str, process: int) -> Iterator[Event]:
    """The events of one trace, as a process of a number of its own."""
    header = trace.header
    rank = f"rank {header.rank} of {header.world_size}: " if header.world_size > 1 else ""
    program = " ".join(header.program) or name
    yield _named("process_name", process, process * _THREADS, f"{rank}{program}")
    yield _meta("process_sort_index", process, process * _THREADS, {"sort_index": process})
    yield from _steps(trace, process)
    yield from _work(trace, process)


def _named(kind: str, process: int, thread: int, name: str) -> Event:
    return _meta(kind, process, thread, {"name": printable(name)})


def _meta(kind: str, process: int, thread: int, arguments: dict[str, Any]) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "ts": 0, "args": arguments}


def _thread(process: int, number: int, name: str) -> Iterator[Event]:
    thread = process * _THREADS + number
    yield _named("thread_name", process, thread, name)
    yield _meta("thread_sort_index", process, thread, {"sort_index": number})


def _piece(name: str, kind: str, where: tuple[int, int], start: float, length: float, **arguments: Any) -> Event:
    process, number = where
    return {
        "ph": "X",
        "name": printable(name),
        "cat": printable(kind) or "other",
        "pid": process,
        "tid": process * _THREADS + number,
        "ts": _us(start),
        "dur": max(_us(length), 0.0),
        "args": arguments,
    }


def _us(value: float) -> float:
    return round(value, 3) if math.isfinite(value) else 0.0


def _steps(trace: Trace, process: int) -> Iterator[Event]:
    """The profiled steps, one after the other, with what they say of idle time."""
    yield from _thread(process, _STEPS, "steps")
    gaps: defaultdict[int, list[Gap]] = defaultdict(list)
    for gap in trace.of(Gap):
        gaps[gap.step].append(gap)
    start = 0.0
    for step in trace.of(Step):
        if not step.profiled:
            continue
        told = sorted(gaps[step.index], key=lambda gap: -gap.ms)[:20]
        facts = {"busy_ms": step.busy_ms, "idle_ms": step.idle_ms, "kernels": step.kernels, "copies": step.copies}
        idle = [{"cause": printable(gap.cause), "line": _line(gap.place), "ms": gap.ms} for gap in told]
        yield _piece(f"step {step.index}", "step", (process, _STEPS), start, step.ms * 1000, **facts, idle=idle)
        start += step.ms * 1000


def _line(place: Place | None) -> str | None:
    return printable(f"{place.file}:{place.line}") if place is not None else None


def _work(trace: Trace, process: int) -> Iterator[Event]:
    activities = trace.of(Activity)
    yield from _thread(process, _IDLE, "idle")
    yield from _idle(trace, activities, process)
    streams = sorted({activity.stream for activity in activities})
    # A thread's number tells its process, too.
    threads = {stream: _STREAMS + min(number, _THREADS - _STREAMS - 1) for number, stream in enumerate(streams)}
    for stream, number in threads.items():
        yield from _thread(process, number, f"stream {stream}")
    for piece in activities:
        where = (process, threads[piece.stream])
        yield _piece(piece.name, piece.kind, where, piece.start_us, piece.us, step=piece.step)


def _idle(trace: Trace, activities: Sequence[Activity], process: int) -> Iterator[Event]:
    """Idle time with its causes; from the work around it where the trace has none."""
    holes = trace.of(Idle)
    for hole in holes:
        line = _line(hole.place)
        name = f"{hole.cause} {line}" if line else hole.cause
        yield _piece(name, "idle", (process, _IDLE), hole.start_us, hole.us, cause=printable(hole.cause), line=line)
    if not holes:
        busy = merged(sorted(Interval(piece.start_us, piece.start_us + piece.us) for piece in activities))
        for left, right in pairwise(busy):
            yield _piece("idle", "idle", (process, _IDLE), left.end, right.start - left.end)

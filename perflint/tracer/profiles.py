"""A profile of the user's own `torch.profiler` as a trace: the Chrome trace that `export_chrome_trace` writes.

With `with_stack=True` it has the Python functions around each wait, but not the line of a call. A wait is placed if its
function calls the name once, or calls all places of that name in order. Otherwise it is an observation at all of them.
A profile does not list the lines that ran, so it refutes nothing.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO

from perflint import __version__
from perflint.source.strict_json import Stream, TooLarge
from perflint.tracer.events import Failure, Header, Hits, Observation, Place, Record, Step, Sync
from perflint.tracer.gaps import analyse
from perflint.tracer.kineto import END, READS, STEP, SYNC, Interval, blocking, merged, sort_out
from perflint.tracer.places import source_file
from perflint.tracer.profile_places import (
    BUILT_IN,
    INDEX,
    NUMBER,
    TRUTH,
    Candidates,
    Files,
    Frame,
    called,
    frame_of,
    shared,
)
from perflint.tracer.trace import Trace

PART = "profile"
"""The part of a trace's failures that are limits of a profile."""
READ, ONE_OF = "profile.read", "profile.one-of"
"""Facts: a number was read in a run without a GPU; a wait happened at one of several places."""
_LARGEST = 1 << 30
"""Characters of a profile, uncompressed."""
_SMALL = 1 << 24
"""The same for a small file."""
_DENSEST = 100
"""A compressed profile takes at least a hundredth of its text; a file made to fill the memory takes a thousandth."""
_MOST = 8_000_000
"""Events of a profile; each takes some hundred bytes of memory."""
_USED = ("ph", "cat", "ts", "dur", "tid")
_USED_ARGUMENTS = ("stream", "correlation")
_STEP = "ProfilerStep#"
_GPU = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_SELECTIONS = ("aten::index", "aten::nonzero", "aten::masked_select")
_EPSILON = 0.001
"""Microseconds between the end of a wait and its mark."""
_LATEST = 1e18
"""Microseconds; an event with a later time is passed over."""
Event = dict[str, Any]


class ProfileError(Exception):
    """A file is not a profile, or cannot be used as one."""


def is_profile(head: bytes) -> bool:
    """True if a text begins as a Chrome trace, and not as a trace of perflint, which is one object a line."""
    return head.lstrip()[:1] == b"{" and b'"record"' not in head.partition(b"\n")[0]


def read_profile(path: Path) -> Trace:
    """The trace of a profile whose project is below the working directory. Raises ProfileError, OSError."""
    largest = min(_LARGEST, max(_SMALL, path.stat().st_size * _DENSEST))
    try:
        with io.TextIOWrapper(unpacked(path), "utf-8") as file:
            events, facts = _read(Stream(file, largest))
    except TooLarge:
        raise ProfileError(f"it is larger than {largest >> 20:,} MB when it is unpacked: record fewer steps") from None
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise ProfileError("it is damaged, or cut off") from None
    except ValueError:
        raise ProfileError("it is not JSON, or cut off") from None
    if events is None:
        raise ProfileError("it has no `traceEvents`, as Chrome traces have")
    return _Profile(events, facts, os.getcwd()).trace(path)


def unpacked(path: Path) -> BinaryIO | gzip.GzipFile:
    """A file for reading, decompressed if it is compressed by gzip. Raises OSError."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")


def _read(document: Stream) -> tuple[list[Event] | None, dict[str, Any]]:
    """The whole events of a profile, None without any, and its facts. Raises ProfileError, ValueError, OSError."""
    events: list[Event] | None = None
    facts: dict[str, Any] = {}
    for name in document.members():
        if name == "traceEvents" and document.begins("["):
            events = _events(document)
        elif name in ("deviceProperties", "baseTimeNanoseconds"):
            facts[name] = document.value()
        else:
            document.skip()
    document.end()
    return events, facts


def _events(document: Stream) -> list[Event]:
    """The whole events of a list. Raises ProfileError for too many."""
    found: list[Event] = []
    for at, event in enumerate(document.items()):
        if at == _MOST:
            raise ProfileError(f"it has more than {_MOST:,} events: record fewer steps")
        if _is_whole(event):
            found.append(_slim(event))
    return found


def _slim(event: Event) -> Event:
    """The parts of an event that are used."""
    slim = {key: event[key] for key in _USED if key in event}
    slim["name"] = sys.intern(event["name"])
    arguments = event.get("args", {})
    slim["args"] = {key: arguments[key] for key in _USED_ARGUMENTS if isinstance(arguments.get(key), int)}
    return slim


def _is_whole(event: Any) -> bool:
    """True for an event of the expected form, with a beginning and a length."""
    if not isinstance(event, dict) or event.get("ph") != "X" or not isinstance(event.get("name"), str):
        return False
    # Marks are added here alone.
    if event["name"].startswith("perflint:") or not isinstance(event.get("cat", ""), str):
        return False
    is_known = isinstance(event.get("tid"), (int, str, NoneType)) and isinstance(event.get("args", {}), dict)
    return is_known and _is_time(event.get("ts")) and _is_time(event.get("dur", 0))


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and abs(value) < _LATEST


@dataclass(slots=True)
class _Span:
    """A Python function or an operator while it ran on a thread."""

    time: Interval
    name: str
    is_python: bool
    frame: Frame | None = None
    """Of a function of the project."""
    around: _Span | None = None


@dataclass(frozen=True, slots=True)
class _Wait:
    """The CPU waited, or read a number in a run without a GPU."""

    time: Interval
    thread: Any
    step: int | None


@dataclass(slots=True)
class _Group:
    """The waits of one call name in one function."""

    frame: Frame
    name: str
    waits: list[tuple[_Wait, _Span | None, _Span]] = field(default_factory=list)
    """Each with its call and the run of its function."""


class _Profile:
    """A profile, with the files of the project that it is of."""

    def __init__(self, events: list[Event], facts: dict[str, Any], root: str) -> None:
        self._events = events
        self._facts = facts
        self._root = root
        self._files = Files(root)
        of_cpu = (event for event in events if event.get("cat") != "gpu_user_annotation")
        self._steps = sorted((each for each in of_cpu if each["name"].startswith(_STEP)), key=lambda each: each["ts"])
        self._starts = [float(event["ts"]) for event in self._steps]
        self._has_gpu = any(event.get("cat") in _GPU for event in events)
        self._has_stacks = any(event.get("cat") == "python_function" for event in events)
        self._children: dict[tuple[int, str], list[_Span]] = defaultdict(list)
        """The calls of a name by one run of a function, by the identity of the run."""

    def trace(self, path: Path) -> Trace:
        """The whole trace."""
        groups, lost = self._groups()
        places: list[Place] = []
        marks: list[Event] = []
        records: list[Record] = []
        for group in groups:
            found = self._files.candidates(group.frame, group.name)
            placed = self._placed(group, found)
            if placed is None:
                records += self._at_one_of(group, found)
                continue
            for place, waits in placed.items():
                records.append(self._record(place, waits))
                marks += [_mark(f"{SYNC}{len(places)}", wait.time.end + _EPSILON, wait.thread) for wait in waits]
                places.append(place)
        analysis = analyse([*self._events, *self._step_marks(), *marks], places) if self._has_gpu else None
        if analysis is not None and analysis.steps:
            of_gpu: tuple[Record, ...] = (*analysis.steps, *analysis.gaps, *analysis.costs)
            records += [*of_gpu, *analysis.kernels, *analysis.activities, *analysis.idles]
        else:
            records += [Step(at, 1, round(event.get("dur", 0) / 1000, 4)) for at, event in enumerate(self._steps)]
        sources = [source_file(name, source.lines) for name, source in self._files.sources()]
        limits = [Failure(PART, text) for text in self._limits(lost)]
        return Trace(self._header(path), (*sources, *records, *limits))

    # Waits

    def _waits(self) -> Iterator[_Wait]:
        """The calls that waited for the GPU; without one, the operators that read a number."""
        if self._has_gpu:
            found = {thread: blocking(calls) for thread, calls in sort_out(self._events).calls.items()}
        else:
            by_thread: dict[Any, list[Interval]] = defaultdict(list)
            for event in self._events:
                if event.get("cat") == "cpu_op" and event["name"] in READS:
                    by_thread[event.get("tid")].append(_time(event))
            found = {thread: merged(sorted(times)) for thread, times in by_thread.items()}
        for thread, times in found.items():
            yield from (_Wait(time, thread, self._step_at(time.start)) for time in times)

    def _step_at(self, when: float) -> int | None:
        """The index of the step at a time."""
        at = bisect_right(self._starts, when) - 1
        return at if at >= 0 and when <= self._starts[at] + float(self._steps[at].get("dur", 0)) else None

    def _groups(self) -> tuple[list[_Group], int]:
        """The waits by function and called name, and the number of waits outside of the project's functions."""
        groups: dict[tuple[Frame, str], _Group] = {}
        lost = 0
        stacks = self._stacks()
        by_thread: dict[Any, list[_Wait]] = defaultdict(list)
        for wait in self._waits():
            by_thread[wait.thread].append(wait)
        for thread, waits in by_thread.items():
            for wait, stack in _with_stacks(waits, stacks.get(thread, [])):
                found = self._call(stack)
                if found is None:
                    lost += 1
                    continue
                run, call, name = found
                assert run.frame is not None
                group = groups.setdefault((run.frame, name), _Group(run.frame, name))
                group.waits.append((wait, call, run))
        return list(groups.values()), lost

    def _stacks(self) -> dict[Any, list[_Span]]:
        """The functions and operators of each thread, in order of time, the outer ones first."""
        found: dict[Any, list[_Span]] = defaultdict(list)
        known: dict[str, Frame | None] = {}
        for event in self._events:
            category = event.get("cat")
            if category not in ("python_function", "cpu_op"):
                continue
            span = _Span(_time(event), event["name"], category == "python_function")
            if span.is_python:
                if span.name not in known:
                    frame = frame_of(span.name)
                    known[span.name] = frame if frame is not None and self._files.has(frame) else None
                span.frame = known[span.name]
            found[event.get("tid")].append(span)
        for spans in found.values():
            spans.sort(key=lambda span: (span.time.start, -span.time.end))
            _nest(spans)
            for span in spans:
                if span.is_python and span.around is not None and span.around.frame is not None:
                    self._children[id(span.around), called(span.name)].append(span)
        return found

    def _call(self, stack: Sequence[_Span]) -> tuple[_Span, _Span | None, str] | None:
        """The run of the innermost function of the project in a stack, and the call in it with its name."""
        at = next((at for at in reversed(range(len(stack))) if stack[at].frame is not None), None)
        if at is None:
            return None
        run, inner = stack[at], stack[at + 1 :]
        assert run.frame is not None
        python = [span for span in inner if span.is_python]
        for depth, span in enumerate(python):
            if depth and span.name.startswith(BUILT_IN):
                # A library calls it, perhaps under a name that this function calls, too.
                return None
            if self._files.candidates(run.frame, called(span.name)).places:
                return run, span, called(span.name)
        if python:
            return None
        name = _without_frame({span.name for span in inner})
        return (run, None, name) if name else None

    # Places

    def _placed(self, group: _Group, found: Candidates) -> dict[Place, list[_Wait]] | None:
        """The waits of a group by place; None if they may be at several of the candidates."""
        if len(found.places) == 1:
            return {found.places[0]: [wait for wait, _, _ in group.waits]}
        return self._in_order(group, found) if found.in_order else None

    def _at_one_of(self, group: _Group, found: Candidates) -> list[Observation]:
        """Observations at all candidates for the waits of a group."""
        waits = [wait for wait, _, _ in group.waits]
        detail = shared(found.places, group.name, group.frame.function)
        ms = sum(wait.time.end - wait.time.start for wait in waits) / 1000
        hits = self._hits(waits)
        return [Observation(place, ONE_OF, hits, ms=round(ms, 4), detail=detail) for place in found.places]

    def _in_order(self, group: _Group, found: Candidates) -> dict[Place, list[_Wait]] | None:
        """The waits of places that each iteration of a loop evaluates in order; None if the calls do not fit that."""
        count = len(found.places)
        numbers: dict[int, int] = {}
        for run in {id(run): run for _, _, run in group.waits}.values():
            chunks: dict[int | None, list[_Span]] = defaultdict(list)
            for each in self._children[id(run), group.name]:
                chunks[self._step_at(each.time.start)].append(each)
            for calls in chunks.values():
                if len(calls) != count:
                    return None
                numbers |= {id(made): number for number, made in enumerate(calls)}
        placed: dict[Place, list[_Wait]] = defaultdict(list)
        for wait, call, _ in group.waits:
            if call is None or id(call) not in numbers:
                return None
            placed[found.places[numbers[id(call)]]].append(wait)
        return placed

    def _record(self, place: Place, waits: Sequence[_Wait]) -> Record:
        hits = self._hits(waits)
        if self._has_gpu:
            return Sync(place, "implicit", hits, stack=(f"{place.file}:{place.line} {place.function}",))
        return Observation(place, READ, hits)

    def _hits(self, waits: Sequence[_Wait]) -> Hits:
        """How often waits happened; without steps, the whole profile counts as one."""
        if not self._steps:
            return Hits(len(waits), 0, (len(waits),))
        windows = [0] * len(self._steps)
        for wait in waits:
            if wait.step is not None:
                windows[wait.step] += 1
        while windows and not windows[-1]:
            windows.pop()
        return Hits(sum(windows), len(waits) - sum(windows), tuple(windows))

    def _step_marks(self) -> Iterator[Event]:
        for index, event in enumerate(self._steps):
            yield _mark(f"{STEP}{index}", self._starts[index], event.get("tid"))
        if self._steps:
            last = self._steps[-1]
            yield _mark(END, float(last["ts"]) + float(last.get("dur", 0)), last.get("tid"))

    # The rest

    def _header(self, path: Path) -> Header:
        devices = self._facts.get("deviceProperties")
        listed = devices if isinstance(devices, list) else []
        names = [str(each.get("name", "GPU")) for each in listed if isinstance(each, dict)]
        base = self._facts.get("baseTimeNanoseconds")
        first = min((float(event["ts"]) for event in self._events), default=0.0)
        begun = (base if isinstance(base, int) and abs(base) < _LATEST * 1000 else 0) / 1e9 + first / 1e6
        return Header(
            perflint=__version__,
            python="",
            torch="",
            devices=tuple(names or ["GPU"]) if self._has_gpu else (),
            program=(path.name,),
            root=self._root,
            started=_utc(begun),
            step_source="marked" if self._steps else "",
            warmup=0,
            steps=max(len(self._steps), 1),
            steps_per_window=1,
            ended="finished",
            lines_recorded=False,
        )

    def _limits(self, lost: int) -> Iterator[str]:
        """The limits of the profile, with advice for recording another."""
        yield "a profile refutes no finding: it does not list the lines that ran; `perflint trace` does"
        if not self._has_stacks:
            yield "it has no Python stacks, so that no wait has a place: record it with `with_stack=True`"
        elif lost:
            waits = "1 wait is" if lost == 1 else f"{lost} waits are"
            yield f"{waits} in no function of this folder, or in a library that the function calls under another name"
        if not self._steps:
            yield "it has no steps, so that counts are of the whole: call `profiler.step()` at the end of each step"


def _without_frame(operators: AbstractSet[str]) -> str:
    """The name for an action of Python without a frame, by the operators in it; empty if it is unknown."""
    if "aten::is_nonzero" in operators:
        return TRUTH
    if operators & READS:
        return NUMBER
    return INDEX if any(name.startswith(_SELECTIONS) for name in operators) else ""


def _with_stacks(waits: list[_Wait], spans: list[_Span]) -> Iterator[tuple[_Wait, list[_Span]]]:
    """The functions and operators around each wait of a thread, outer ones first."""
    starts = [span.time.start for span in spans]
    for wait in waits:
        at = bisect_right(starts, wait.time.start) - 1
        inner = spans[at] if at >= 0 else None
        stack: list[_Span] = []
        while inner is not None:
            if inner.time.end >= wait.time.end:
                stack.append(inner)
            inner = inner.around
        yield wait, stack[::-1]


def _nest(spans: Iterable[_Span]) -> None:
    """Set `around` of spans, which are in order of time."""
    stack: list[_Span] = []
    for span in spans:
        while stack and stack[-1].time.end < span.time.end:
            stack.pop()
        while stack and stack[-1].time.end <= span.time.start:
            stack.pop()
        span.around = stack[-1] if stack else None
        stack.append(span)


def _time(event: Event) -> Interval:
    start = float(event["ts"])
    return Interval(start, start + float(event.get("dur", 0)))


def _mark(name: str, when: float, thread: Any) -> Event:
    return {"ph": "X", "cat": "user_annotation", "name": name, "ts": when, "dur": 0, "tid": thread, "args": {}}


def _utc(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""

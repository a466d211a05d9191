"""Pictures of the profiled steps: when the GPU was busy, and why it was not.

The shapes stretch to the width of the page; words stay outside of them, so that they can be read
at any width.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10

from perflint.output.report.clock import Clock
from perflint.output.report.facts import Facts, alone_us, finite, is_whole, share, union
from perflint.output.report.lines import line_ids
from perflint.output.report.markup import Markup, join, tag
from perflint.output.report.numbers import ms, percent, plain
from perflint.output.report.overview import CAUSES, swatch
from perflint.output.report.parts import Column, Names, Section, details, left_out, section, table
from perflint.tracer.events import Activity, Idle, Step
from perflint.tracer.kineto import Interval
from perflint.tracer.ranks import is_collective

BINS = 600
"""Pieces of a lane."""
LANES = 8
"""Steps drawn."""
ROWS = 100
"""Steps in the table."""
HOLES = 200
"""Idle stretches drawn in a lane, the longest."""
LINKS = 3
"""Lines that a lane names."""
_TOP, _BASE, _COPY, _HEIGHT = 2, 40, 50, 68
"""The upper edge of a lane, the lower ones of kernels and copies, and its height."""
_LOW = 0.6
"""How high collectives are drawn beside other kernels, behind which they hide."""
_HOLES = {"sync": 12, "loader": 8, "host": 3}
"""How high an idle stretch is drawn: a colour alone must not tell its cause."""


@dataclass(frozen=True, slots=True)
class _Hole:
    """An idle stretch, in corrected microseconds from the start of its step."""

    idle: Idle
    start: float
    us: float


@dataclass(frozen=True, slots=True)
class _Lane:
    """A profiled step without the time that the profiler adds; times in microseconds from its start."""

    step: Step
    span: float
    kernels: Sequence[Interval]
    collectives: Sequence[Interval]
    copies: Sequence[Interval]
    holes: tuple[_Hole, ...]
    is_whole: bool
    """True if the trace holds every piece of work of the step."""
    alone_ms: float
    """How long there are collectives and nothing else."""


def timeline(facts: Facts, names: Names) -> Section | None:
    """The profiled steps, one below the other on the same scale."""
    steps = [step for step in facts.trace.of(Step) if step.profiled]
    if not steps:
        return None
    lanes = _lanes(facts, steps[:LANES])
    scale = max((lane.span for lane in lanes), default=0.0) or 1.0
    ids = line_ids(facts, names)
    drawn = [_drawn(lane, scale, names.id(f"lane{number}"), ids) for number, lane in enumerate(lanes)]
    legend = [
        tag("li", swatch(kind, _HOLES.get(kind, 9 if kind == "meeting" else None)), tag("span", words))
        for kind, words in _legend(lanes)
    ]
    return section(
        names,
        "timeline",
        "The GPU, step by step",
        tag("p", _explained(facts), class_="lead"),
        tag("ul", legend, class_="legend holes"),
        tag("ol", drawn, class_="lanes"),
        _axis(scale),
        left_out(len(steps) - len(lanes), "profiled steps are"),
        details("The figures as a table", _step_table(steps, facts.trace.idle_share)),
        short="Timeline",
    )


def _explained(facts: Facts) -> str:
    text = "Steps that torch’s profiler watched, on one scale. The height is the share of time with work."
    added = 1 - facts.trace.idle_share
    if added >= 0.005:
        text += f" The idle time that the profiler adds, {percent(added)} of what it saw, is taken out."
    return f"{text} An idle stretch after a wait leads to the line that waits." if facts.lines else text


def _legend(lanes: Sequence[_Lane]) -> list[tuple[str, str]]:
    causes = {hole.idle.cause for lane in lanes for hole in lane.holes}
    kinds = [("kernel", "kernels"), ("copy", "copies and fills")]
    if any(lane.collectives for lane in lanes):
        kinds.insert(1, ("meeting", "collectives, lower, where nothing else runs"))
    return kinds + [(cause, CAUSES[cause]) for cause in ("sync", "loader", "host") if cause in causes]


def _lanes(facts: Facts, steps: Sequence[Step]) -> list[_Lane]:
    work: defaultdict[int, list[Activity]] = defaultdict(list)
    for activity in facts.trace.of(Activity):
        work[activity.step].append(activity)
    idle: defaultdict[int, list[Idle]] = defaultdict(list)
    for hole in facts.trace.of(Idle):
        idle[hole.step].append(hole)
    lanes, start = [], 0.0
    for step in steps:
        span = max(finite(step.ms * 1000), 0.0)
        pieces = work[step.index]
        clock = _clock(step, start, span, pieces, facts.trace.idle_share)
        longest = sorted(idle[step.index], key=lambda hole: -hole.us)[:HOLES]
        lanes.append(
            _Lane(
                step,
                clock.span,
                _timed(clock, (piece for piece in pieces if piece.kind == "kernel" and not is_collective(piece.name))),
                _timed(clock, (piece for piece in pieces if piece.kind == "kernel" and is_collective(piece.name))),
                _timed(clock, (piece for piece in pieces if piece.kind != "kernel")),
                tuple(_hole(clock, hole) for hole in longest),
                is_whole(step, pieces),
                alone_us(pieces) / 1000,
            )
        )
        start += span
    return lanes


def _clock(step: Step, start: float, span: float, pieces: Sequence[Activity], kept: float) -> Clock:
    """The clock of a step. Where the trace does not hold all work, it slows down everywhere alike."""
    if is_whole(step, pieces):
        return Clock(start, span, union(pieces), kept)
    return Clock(start, span, (), share(step.busy_ms + kept * step.idle_ms, step.ms) or 0.0)


def _timed(clock: Clock, pieces: Iterable[Activity]) -> list[Interval]:
    """When at least one of some pieces of work runs."""
    return [Interval(clock.at(piece.start), clock.at(piece.end)) for piece in union(pieces)]


def _hole(clock: Clock, idle: Idle) -> _Hole:
    start, us = finite(idle.start_us), max(finite(idle.us), 0.0)
    begin, end = clock.at(start), clock.at(start + us)
    return _Hole(idle, begin, end - begin)


def _drawn(lane: _Lane, scale: float, name: str, ids: Mapping[tuple[str, int], str]) -> Markup:
    end = _x(lane.span, scale)
    shapes = [
        tag("rect", width=end, height=_BASE, class_="free"),
        _silhouette(lane.collectives, scale, _BASE, (_BASE - _TOP) * _LOW, "meeting"),
        _silhouette(lane.kernels, scale, _BASE, _BASE - _TOP, "kernel"),
        _silhouette(lane.copies, scale, _COPY, _COPY - _BASE - 3, "copy"),
        [_idle(hole, scale, ids) for hole in lane.holes],
        tag("line", x1=0, x2=end, y1=_BASE, y2=_BASE, class_="base"),
    ]
    svg = tag(
        "svg",
        tag("title", f"Step {lane.step.index}", id=f"{name}-title"),
        tag("desc", _described(lane), id=f"{name}-desc"),
        shapes,
        viewBox=f"0 0 {BINS} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )
    return tag("li", tag("p", _label(lane), _linked(lane, ids), class_="label"), svg)


def _label(lane: _Lane) -> Markup:
    step = lane.step
    busy = percent(share(step.busy_ms * 1000, lane.span))
    alone = f" · of it {ms(lane.alone_ms)} only collectives" if lane.alone_ms else ""
    missing = "" if lane.is_whole else " · the trace holds only the first of its work"
    return join(tag("b", f"Step {step.index}"), f" {ms(lane.span / 1000)} · busy {busy}{alone}{missing}")


def _linked(lane: _Lane, ids: Mapping[tuple[str, int], str]) -> Markup:
    """Links to the lines after which the GPU idles longest in a step."""
    idle: defaultdict[tuple[str, int], float] = defaultdict(float)
    for hole in lane.holes:
        place = hole.idle.place
        if place is not None and (place.file, place.line) in ids:
            idle[place.file, place.line] += hole.us
    longest = sorted(idle, key=lambda line: -idle[line])[:LINKS]
    links = [tag("a", f"{file.rpartition('/')[2]}:{line}", href=f"#{ids[file, line]}") for file, line in longest]
    return join(" · idle after ", [[", " if at else "", link] for at, link in enumerate(links)]) if links else Markup()


def _described(lane: _Lane) -> str:
    step = lane.step
    idle = max(lane.span / 1000 - step.busy_ms, 0.0)
    text = f"Takes {ms(lane.span / 1000)}: the GPU is busy for {ms(step.busy_ms)} and idle for {ms(idle)}."
    if lane.alone_ms:
        text += f" For {ms(lane.alone_ms)} it does nothing but collectives."
    if not lane.holes:
        return text
    hole = lane.holes[0]
    return f"{text} The longest idle stretch: {_told(hole)}, from {ms(hole.start / 1000)}."


def _told(hole: _Hole) -> str:
    place = hole.idle.place
    where = f", {place.file}:{place.line}" if place else ""
    return f"{ms(hole.us / 1000, 3)} {CAUSES.get(hole.idle.cause, 'idle')}{where}"


def _idle(hole: _Hole, scale: float, ids: Mapping[tuple[str, int], str]) -> Markup:
    """The shape of an idle stretch. It leads to its line; a keyboard takes the links above the lane."""
    start, end = _x(hole.start, scale), _x(hole.start + hole.us, scale)
    kind = hole.idle.cause if hole.idle.cause in CAUSES else "host"
    height = _HOLES.get(kind, 4)
    title = tag("title", _told(hole))
    shape = tag("rect", title, x=start, y=_COPY + 3, width=max(end - start, 0.6), height=height, class_=kind)
    place = hole.idle.place
    line = ids.get((place.file, place.line)) if place is not None else None
    return tag("a", shape, href=f"#{line}", tabindex=-1) if line is not None else shape


def _x(us: float, scale: float) -> float:
    return round(min(max(finite(us) / scale, 0.0), 1.0) * BINS, 2)


def _silhouette(intervals: Sequence[Interval], scale: float, base: float, height: float, kind: str) -> Markup:
    """How much of each piece of time is used, as one shape."""
    used = coverage(intervals, 0.0, scale, BINS)
    commands, at = [], 0
    while at < BINS:
        end = at + 1
        while end < BINS and abs(used[end] - used[at]) < 0.01:
            end += 1
        if used[at] >= 0.004:
            # Never thinner than what can be seen.
            top = base - max(used[at] * height, 1.0)
            commands.append(f"M{at} {base}V{top:.1f}H{end}V{base}Z")
        at = end
    return tag("path", d=Markup("".join(commands)), class_=kind) if commands else Markup()


def coverage(intervals: Sequence[Interval], start: float, end: float, bins: int) -> list[float]:
    """The share of each of equal parts of a stretch that disjoint intervals cover."""
    used = [0.0] * bins
    width = (end - start) / bins
    if width <= 0:
        return used
    for interval in intervals:
        left, right = max(interval.start, start), min(interval.end, end)
        if left >= right:
            continue
        first = min(int((left - start) / width), bins - 1)
        last = min(int((right - start) / width), bins - 1)
        for at in range(first, last + 1):
            low, high = start + at * width, start + (at + 1) * width
            used[at] += max(min(right, high) - max(left, low), 0.0) / width
    return [min(share, 1.0) for share in used]


def _axis(scale: float) -> Markup:
    """Marks of time below the lanes."""
    step = nice(scale / 1000 / 4)
    marks = [number * step for number in range(1, int(scale / 1000 / step) + 1)] if step > 0 else []
    labels = [tag("text", "0 ms", x="0%", y=14)]
    for mark in marks[:10]:
        at = mark * 1000 / scale
        labels.append(tag("text", f"{mark:g}", x=f"{at:.2%}", y=14, text_anchor="end" if at > 0.95 else "middle"))
    return tag("svg", labels, class_="axis", aria_hidden="true")


def nice(value: float) -> float:
    """The nearest number from 1, 2 and 5 with zeros that is not smaller; 0 for none."""
    if value <= 0:
        return 0.0
    power = 10.0 ** floor(log10(value))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value * 0.999)


def _step_table(steps: Sequence[Step], kept: float) -> Markup:
    titles = ("ms", "busy ms", "idle ms", "with the profiler, ms", "kernels", "copies")
    columns = [Column("Step"), *(Column(title, True) for title in titles)]
    rows = [
        (
            str(step.index),
            plain(step.busy_ms + kept * step.idle_ms),
            plain(step.busy_ms),
            plain(kept * step.idle_ms),
            plain(step.ms),
            f"{step.kernels:,}",
            f"{step.copies:,}",
        )
        for step in steps[:ROWS]
    ]
    return table("Profiled steps", columns, rows, is_caption_hidden=True, class_="narrow")

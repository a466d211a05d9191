"""The differences of two traces. Times are in milliseconds per step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from statistics import quantiles

from perflint.output.report.facts import Facts, Line, gather
from perflint.output.report.kinds import by_kind
from perflint.output.report.overview import parts_of
from perflint.tracer.events import Header, Kernel, Step
from perflint.tracer.trace import Trace

_FEWEST_STEPS = 4
"""Steps from which their times have quartiles that mean something."""
_CONDITIONS = ("program", "devices", "torch", "python", "world_size", "simulated", "step_source")
"""Fields of the header that both runs should share if their times are to be compared."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One figure of both traces; None where a trace does not have it."""

    before: float | None
    after: float | None

    @property
    def change(self) -> float | None:
        """The difference; below 0 the second run has less."""
        return None if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True)
class LinePair:
    """A line of code that waits for the GPU in at least one of the runs. Its number may differ in the two."""

    before: Line | None
    after: Line | None

    @property
    def cost_ms(self) -> Pair:
        """The cost of its waits per step: 0 in a run with a timeline in which it did not wait."""
        return Pair(_cost(self.before), _cost(self.after))

    @property
    def text(self) -> str:
        """The code of the line."""
        line = self.after or self.before
        return line.syncs[0].place.text if line is not None else ""


@dataclass(frozen=True, slots=True)
class WorkPair:
    """One kind of work on the GPU."""

    kind: str
    ms: Pair
    count: Pair
    """Kernels, copies or fills per step."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences of two traces."""

    before: Facts
    after: Facts
    step_ms: Pair
    idle_ms: Pair
    parts: dict[str, Pair]
    """The parts of a step, by the names of `report.overview.CAUSES`. Empty if neither trace has a timeline."""
    waits: Pair
    """Waits for the GPU per step."""
    gone: tuple[LinePair, ...]
    """Lines that wait in the first run only, the most expensive first."""
    new: tuple[LinePair, ...]
    """Lines that wait in the second run only."""
    kept: tuple[LinePair, ...]
    """Lines that wait in both."""
    work: tuple[WorkPair, ...]
    """Work on the GPU by kind, the greatest change of time first."""
    is_within_spread: bool
    """True if the medians of both runs lie within the middle half of the other run's steps."""
    conditions: tuple[tuple[str, str, str], ...]
    """The conditions that differ, with their values in both runs."""


def compare(before: Trace, after: Trace) -> Comparison:
    """Compare a trace with one that was recorded later."""
    first, second = gather(before), gather(after)
    gone, new, kept = _lines(first, second)
    return Comparison(
        first,
        second,
        Pair(first.step_ms, second.step_ms),
        Pair(first.idle_ms, second.idle_ms),
        _parts(first, second),
        Pair(_waits(first), _waits(second)),
        gone,
        new,
        kept,
        _work(before, after),
        _is_within(first, second) and _is_within(second, first),
        tuple(_conditions(before.header, after.header)),
    )


def _cost(line: Line | None) -> float | None:
    return 0.0 if line is None else line.cost_ms


def _waits(facts: Facts) -> float | None:
    header = facts.trace.header
    return sum(line.per_step for line in facts.lines) if header.steps and (header.devices or header.simulated) else None


def _parts(before: Facts, after: Facts) -> dict[str, Pair]:
    first, second = parts_of(before), parts_of(after)
    if "collective" in first or "collective" in second:
        # A run without collectives spends no time in them.
        first = first and {"collective": 0.0} | first
        second = second and {"collective": 0.0} | second
    order = ("busy", "collective", "sync", "loader", "host")
    return {kind: Pair(first.get(kind), second.get(kind)) for kind in order if kind in first or kind in second}


def _lines(before: Facts, after: Facts) -> tuple[tuple[LinePair, ...], ...]:
    """The lines that went, those that came, and those that are in both.

    A line is known by its file, function and text, since an edit moves the numbers of lines. Of lines that look the
    same, the first of one run belongs to the first of the other.
    """
    first, second = _by_look(before), _by_look(after)
    pairs = [
        LinePair(one, other)
        for look in first | second
        for one, other in zip_longest(first.get(look, ()), second.get(look, ()))
    ]
    gone = [pair for pair in pairs if pair.after is None]
    new = [pair for pair in pairs if pair.before is None]
    kept = [pair for pair in pairs if pair.before is not None and pair.after is not None]
    return tuple(tuple(sorted(some, key=_most_expensive_first)) for some in (gone, new, kept))


def _by_look(facts: Facts) -> dict[tuple[str, str, str], list[Line]]:
    found: defaultdict[tuple[str, str, str], list[Line]] = defaultdict(list)
    for line in sorted(facts.lines, key=lambda line: (line.file, line.line)):
        place = line.syncs[0].place
        found[line.file, place.function, place.text].append(line)
    return found


def _most_expensive_first(pair: LinePair) -> tuple[object, ...]:
    cost, line = pair.cost_ms, pair.before or pair.after
    assert line is not None
    return -max(cost.before or 0.0, cost.after or 0.0), -line.per_step, line.file, line.line


def _work(before: Trace, after: Trace) -> tuple[WorkPair, ...]:
    first, second = _by_kind(before), _by_kind(after)
    pairs = [
        WorkPair(kind, *(Pair(_at(first, kind, index), _at(second, kind, index)) for index in (0, 1)))
        for kind in {**(first or {}), **(second or {})}
    ]
    return tuple(sorted(pairs, key=_most_changed_first))


def _most_changed_first(pair: WorkPair) -> tuple[object, ...]:
    return -abs(pair.ms.change or 0.0), -max(pair.ms.before or 0.0, pair.ms.after or 0.0), pair.kind


def _by_kind(trace: Trace) -> dict[str, tuple[float, float]] | None:
    """Milliseconds and pieces of work per step, by kind; None without a timeline."""
    steps = trace.profiled_steps
    if not steps:
        return None
    return {kind: (ms / steps, count / steps) for kind, ms, count in by_kind(trace.of(Kernel))}


def _at(found: dict[str, tuple[float, float]] | None, kind: str, index: int) -> float | None:
    return None if found is None else found.get(kind, (0.0, 0.0))[index]


def _is_within(facts: Facts, other: Facts) -> bool:
    """True if the median of a run lies within the middle half of the other run's steps."""
    times = [step.ms for step in other.trace.of(Step) if not step.profiled]
    if facts.step_ms is None or other.step_ms is None or len(times) < _FEWEST_STEPS:
        return False
    low, _, high = quantiles(times, n=4)
    return low <= facts.step_ms <= high


def _conditions(before: Header, after: Header) -> Iterator[tuple[str, str, str]]:
    for name in _CONDITIONS:
        separator = " " if name == "program" else ", "
        first, second = (_shown(getattr(header, name), separator) for header in (before, after))
        if first != second:
            yield name, first, second


def _shown(value: object, separator: str) -> str:
    if isinstance(value, tuple):
        return separator.join(str(each) for each in value) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value) or "none"

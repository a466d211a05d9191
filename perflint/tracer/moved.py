"""Finds the lines of a file again that was edited since it was traced."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from perflint.findings import Span
from perflint.tracer.events import Place, SourceFile
from perflint.tracer.places import source_file

_END = 1 << 20
"""A column behind any line's end."""
_DEEPEST = 20
"""How often a stretch of lines is divided."""


class MovedLines:
    """The lines of a file as they were in a trace, and as they are now. Lines from 1."""

    def __init__(self, then: SourceFile, lines: Sequence[str]) -> None:
        now = source_file(then.file, lines)
        self.is_changed = now.digest != then.digest
        """True if the file is another than the one that was traced."""
        self._then, self._now = then, now
        self._now_by_then: dict[int, int] = {}
        self._then_by_now: dict[int, int] = {}
        if self.is_changed:
            self._now_by_then = {old + 1: new + 1 for old, new in same_lines(then.lines, now.lines)}
            self._then_by_now = {now: then for then, now in self._now_by_then.items()}

    def then(self, line: int) -> int | None:
        """The line that a line of now was; None for one that was written or edited since."""
        return self._then_by_now.get(line) if self.is_changed else line

    def span(self, place: Place) -> Span | None:
        """The present place of a traced expression; None if its first or last line is gone."""
        line, end_line = self._find(place.line), self._find(place.end_line)
        if line is None or end_line is None or end_line - line != place.end_line - place.line:
            return None
        if (place.line, place.column) == (place.end_line, place.end_column):
            # Only the line is known.
            return Span(line, 1, line, _END)
        column = place.column + self._shift(place.line, line)
        return Span(line, max(column, 1), end_line, max(place.end_column + self._shift(place.end_line, end_line), 1))

    def _find(self, line: int) -> int | None:
        return self._now_by_then.get(line) if self.is_changed else line

    def _shift(self, then: int, now: int) -> int:
        """How many characters further in a line begins now."""
        return self._now.indents[now - 1] - self._then.indents[then - 1] if self.is_changed else 0


def same_lines(then: Sequence[str], now: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The lines that two texts share, in order, from 0.

    Equal lines at the ends of both are the same; so are lines that both have once, in the longest order that both
    have; then the stretches between these are compared alike. `difflib` needs cubic time where many lines are
    equal, and a trace may come from anyone; this takes n log n.
    """
    waiting = [(0, len(then), 0, len(now), 0)]
    while waiting:
        start, end, new_start, new_end, depth = waiting.pop()
        while start < end and new_start < new_end and then[start] == now[new_start]:
            yield start, new_start
            start, new_start = start + 1, new_start + 1
        while start < end and new_start < new_end and then[end - 1] == now[new_end - 1]:
            end, new_end = end - 1, new_end - 1
            yield end, new_end
        if start == end or new_start == new_end or depth == _DEEPEST:
            continue
        unique = _unique_lines(then, start, end, now, new_start, new_end)
        yield from unique
        for old, new in [*unique, (end, new_end)] if unique else ():
            waiting.append((start, old, new_start, new, depth + 1))
            start, new_start = old + 1, new + 1


def _unique_lines(
    then: Sequence[str], start: int, end: int, now: Sequence[str], new_start: int, new_end: int
) -> list[tuple[int, int]]:
    """The lines that two stretches have once each, as many as are in the same order in both."""
    old_count, new_count = Counter(then[start:end]), Counter(now[new_start:new_end])
    new_place = {now[at]: at for at in range(new_start, new_end)}
    pairs = [(at, new_place[then[at]]) for at in range(start, end) if old_count[then[at]] == new_count[then[at]] == 1]
    # The longest increasing run of places: the least place that ends a run of each length, and how it goes on.
    ends: list[int] = []
    runs: list[tuple[int, int] | None] = []
    before: dict[tuple[int, int], tuple[int, int] | None] = {}
    for pair in pairs:
        length = bisect_left(ends, pair[1])
        before[pair] = runs[length - 1] if length else None
        ends[length : length + 1] = [pair[1]]
        runs[length : length + 1] = [pair]
    found: list[tuple[int, int]] = []
    last = runs[-1] if runs else None
    while last is not None:
        found.append(last)
        last = before[last]
    return found[::-1]

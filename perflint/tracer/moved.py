"""Finds the lines of a file again that was edited since it was traced."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from perflint.findings import Span
from perflint.tracer.events import Place, SourceFile
from perflint.tracer.places import source_file

_END = 1 << 20
"""A column behind any line's end."""


class MovedLines:
    """The lines of a file as they were in a trace, and as they are now. Lines from 1."""

    def __init__(self, then: SourceFile, lines: Sequence[str]) -> None:
        now = source_file(then.file, lines)
        self.is_changed = now.digest != then.digest
        """Whether the file is another than the one that was traced."""
        self._then, self._now = then, now
        self._now_by_then: dict[int, int] = {}
        self._then_by_now: dict[int, int] = {}
        if self.is_changed:
            for block in SequenceMatcher(None, then.lines, now.lines, autojunk=False).get_matching_blocks():
                for offset in range(block.size):
                    self._now_by_then[block.a + offset + 1] = block.b + offset + 1
            self._then_by_now = {now: then for then, now in self._now_by_then.items()}

    def then(self, line: int) -> int | None:
        """The line that a line of now was; None for one that was written or edited since."""
        return self._then_by_now.get(line) if self.is_changed else line

    def span(self, place: Place) -> Span | None:
        """Where a traced expression is now; None where its first or last line is there no more."""
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

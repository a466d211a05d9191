"""A text, the edits made in it, and where a place of the one is in the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from itertools import accumulate

from perflint.findings import Edit, Span
from perflint.frozen import dataclass
from perflint.source.text import Source

Place = tuple[int, int]
"""What the texts before and after have in common: (-1, offset before) of what was left alone,
(stage, index) of what an edit replaced."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An edit by offsets in characters: `start` to `end` became `new_start` to `new_end`."""

    start: int
    end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A text after one or more stages of edits."""

    text: str
    stages: tuple[tuple[Piece, ...], ...]

    def then(self, later: Rewrite) -> Rewrite:
        """This rewrite followed by one of its result."""
        return Rewrite(later.text, (*self.stages, *later.stages))

    def place_before(self, offset: int) -> Place:
        """The place of an offset of the text before."""
        at = offset
        for stage, pieces in enumerate(self.stages):
            moved = at
            for index, piece in enumerate(pieces):
                if piece.start <= at < piece.end:
                    return stage, index
                if piece.end <= at:
                    moved = at + piece.new_end - piece.end
            at = moved
        return -1, offset

    def place_after(self, offset: int) -> Place:
        """The place of an offset of the text after."""
        at = offset
        for stage in reversed(range(len(self.stages))):
            moved = at
            for index, piece in enumerate(self.stages[stage]):
                if piece.new_start <= at < piece.new_end:
                    return stage, index
                if piece.new_end <= at:
                    moved = at + piece.end - piece.new_end
            at = moved
        return -1, at


@dataclass(frozen=True, slots=True)
class Offsets:
    """Offsets in characters of the lines of a text."""

    source: Source
    starts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", tuple(accumulate(map(len, self.source.lines), initial=0)))

    def of(self, line: int, column: int) -> int:
        """The offset of a position, at most the length of the text."""
        if line > len(self.starts):
            return self.starts[-1]
        return min(self.starts[line - 1] + column - 1, self.starts[-1])

    def range(self, span: Span) -> tuple[int, int]:
        """The offsets of a span's ends."""
        return self.of(span.line, span.column), self.of(span.end_line, span.end_column)


def rewrite(source: Source, edits: Iterable[Edit]) -> Rewrite:
    """Make some edits, which must not overlap; insertions at one place keep their order."""
    offsets = Offsets(source)
    ranges = [(*offsets.range(edit.span), edit.text) for edit in edits]
    ranges.sort(key=lambda found: found[:2])
    parts: list[str] = []
    pieces: list[Piece] = []
    position = length = 0
    for start, end, text in ranges:
        parts += source.text[position:start], text
        length += start - position
        pieces.append(Piece(start, end, length, length + len(text)))
        length += len(text)
        position = end
    parts.append(source.text[position:])
    return Rewrite("".join(parts), (tuple(pieces),))

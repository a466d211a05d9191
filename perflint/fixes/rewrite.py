"""A text, the edits made in it, and where a place of the one is in the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from perflint.findings import Edit, Span
from perflint.frozen import dataclass, field
from perflint.source.text import Source

Place = tuple[int, int]
"""A place that the texts before and after have in common: (-1, offset before) in unchanged text, (stage, index) in the
text of an edit."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An edit by offsets in characters: `start` to `end` became `new_start` to `new_end`."""

    start: int
    end: int
    new_start: int
    new_end: int


class Stage:
    """Edits that were made at once, in the order of the text, with the offsets that each side has of them."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = tuple(pieces)
        self._ends = [piece.end for piece in pieces]
        self._new_ends = [piece.new_end for piece in pieces]

    def replaced(self, offset: int) -> int | None:
        """The piece, by its index, that replaced what was at an offset of the text before."""
        index = bisect_right(self._ends, offset)
        return index if index < len(self.pieces) and self.pieces[index].start <= offset else None

    def written(self, offset: int) -> int | None:
        """The piece, by its index, that wrote what is at an offset of the text after."""
        index = bisect_right(self._new_ends, offset)
        return index if index < len(self.pieces) and self.pieces[index].new_start <= offset else None

    def forwards(self, offset: int) -> int:
        """The offset after the edits, for an offset in unchanged text."""
        index = bisect_right(self._ends, offset)
        return offset + self._new_ends[index - 1] - self._ends[index - 1] if index else offset

    def backwards(self, offset: int) -> int:
        """The offset before the edits, for an offset in unchanged text."""
        index = bisect_right(self._new_ends, offset)
        return offset + self._ends[index - 1] - self._new_ends[index - 1] if index else offset


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A text after one or more stages of edits."""

    text: str
    stages: tuple[Stage, ...]

    def then(self, later: Rewrite) -> Rewrite:
        """This rewrite followed by one of its result."""
        return Rewrite(later.text, (*self.stages, *later.stages))

    def place_before(self, offset: int) -> Place:
        """The place of an offset of the text before."""
        at = offset
        for number, stage in enumerate(self.stages):
            index = stage.replaced(at)
            if index is not None:
                return number, index
            at = stage.forwards(at)
        return -1, offset

    def place_after(self, offset: int) -> Place:
        """The place of an offset of the text after."""
        for number in reversed(range(len(self.stages))):
            index = self.stages[number].written(offset)
            if index is not None:
                return number, index
            offset = self.stages[number].backwards(offset)
        return -1, offset


@dataclass(frozen=True, slots=True)
class Offsets:
    """Offsets in characters of the lines of a text."""

    source: Source
    starts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", tuple(accumulate(map(len, self.source.lines), initial=0)))

    def of(self, line: int, column: int) -> int:
        """The offset of a position, at most the length of the text: a house rule may name any position."""
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
    return Rewrite("".join(parts), (Stage(pieces),))

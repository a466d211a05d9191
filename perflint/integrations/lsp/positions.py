"""Places of a text as the protocol counts them: lines and columns from 0, columns in the units of an encoding."""

from __future__ import annotations

import difflib

from lsprotocol.types import Position, PositionEncodingKind, Range, TextEdit

from perflint.findings import Span
from perflint.source.text import Source

_MOST_LINES = 1_000
"""Changed lines that are compared one by one."""


class Positions:
    """Converts places of one text."""

    def __init__(self, source: Source, encoding: str = PositionEncodingKind.Utf16) -> None:
        self._source = source
        self._encoding = encoding

    def range(self, span: Span) -> Range:
        """The range of a span."""
        return Range(self._position(span.line, span.column), self._position(span.end_line, span.end_column))

    def place(self, position: Position) -> tuple[int, int]:
        """The line and column, from 1 and in characters, of a position; the nearest ones if the text has none."""
        lines = self._source.lines
        if position.line >= len(lines):
            return len(lines) + 1, 1
        text = lines[position.line].rstrip("\r\n")
        if text.isascii():
            return position.line + 1, min(position.character, len(text)) + 1
        units = 0
        for at, character in enumerate(text):
            if units >= position.character:
                return position.line + 1, at + 1
            units += self._units(character)
        return position.line + 1, len(text) + 1

    def edits(self, text: str) -> list[TextEdit]:
        """The changes of whole lines that turn the text into another."""
        before, after = self._source.lines, Source("", text).lines
        head = 0
        shortest = min(len(before), len(after))
        while head < shortest and before[head] == after[head]:
            head += 1
        tail = 0
        while tail < shortest - head and before[-1 - tail] == after[-1 - tail]:
            tail += 1
        old, new = before[head : len(before) - tail], after[head : len(after) - tail]
        if max(len(old), len(new)) > _MOST_LINES:
            return [self._replaced(head, head + len(old), new)]
        blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return [
            self._replaced(head + start, head + end, new[new_start:new_end])
            for kind, start, end, new_start, new_end in blocks
            if kind != "equal"
        ]

    def _replaced(self, start: int, end: int, lines: list[str]) -> TextEdit:
        return TextEdit(Range(self._start(start), self._start(end)), "".join(lines))

    def _start(self, index: int) -> Position:
        """The start of a line; the end of the text behind the last one, which may lack its newline."""
        lines = self._source.lines
        if index < len(lines) or not lines or lines[-1].endswith(("\n", "\r")):
            return Position(index, 0)
        return self._position(len(lines), len(lines[-1]) + 1)

    def _position(self, line: int, column: int) -> Position:
        lines = self._source.lines
        text = lines[line - 1][: column - 1] if line <= len(lines) else ""
        return Position(line - 1, self._units(text))

    def _units(self, text: str) -> int:
        if text.isascii() or self._encoding == PositionEncodingKind.Utf32:
            return len(text)
        if self._encoding == PositionEncodingKind.Utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2

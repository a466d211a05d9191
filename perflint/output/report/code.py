"""The source behind places, where it is still what was traced."""

from __future__ import annotations

import os
import stat
import tokenize
from collections.abc import Iterable
from pathlib import Path

from perflint.output.report.markup import Markup, join, tag, text
from perflint.tracer.events import Place, SourceFile
from perflint.tracer.places import source_file
from perflint.tracer.trace import Trace

AROUND = 3
"""Lines shown before and after."""
SIZE_LIMIT = 4 << 20
"""Bytes of a source file."""
WIDEST = 240
"""Characters of a line."""
_TAB = "    "


class Code:
    """Reads the files that a trace names, and gives no line of one that is not what was traced.

    So a page holds nothing that its trace does not know, whatever files a foreign trace names.
    """

    def __init__(self, trace: Trace, root: Path) -> None:
        self._root = root
        self._digests = {source.file: source.digest for source in trace.of(SourceFile)}
        self._lines: dict[str, list[str] | None] = {}
        self.changed: list[str] = []
        """Files read so far that have changed since."""
        self.missing: list[str] = []
        """Files asked for so far that are not there."""

    def lines(self, file: str) -> list[str] | None:
        """The lines of a file, without their ends; None where it is not what was traced."""
        if file not in self._lines:
            self._lines[file] = self._read(file)
        return self._lines[file]

    def _read(self, file: str) -> list[str] | None:
        lines = _lines(self._root / file) if file in self._digests else None
        if lines is None:
            self.missing.append(file)
            return None
        if source_file(file, lines).digest != self._digests[file]:
            self.changed.append(file)
            return None
        return [line.rstrip("\n") for line in lines]


def _lines(path: Path) -> list[str] | None:
    """The lines of a file as `linecache` gives them, which the tracer takes digests of."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > SIZE_LIMIT:
            return None
        with tokenize.open(path) as stream:
            lines = stream.readlines()
    except (OSError, SyntaxError, ValueError):
        return None
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines or None


def excerpt(places: Iterable[Place], lines: list[str] | None, name: str) -> Markup:
    """The lines around some expressions that begin on one line, with these marked; else the recorded text."""
    spans = sorted(set(places), key=lambda place: (place.column, place.end_line, place.end_column))
    first = spans[0]
    if lines is None or not 0 < first.line <= len(lines):
        return _listing([_row(first.line, text(first.text, WIDEST), True)], f"{name}, as recorded")
    shown = range(max(first.line - AROUND, 1), min(first.line + AROUND, len(lines)) + 1)
    margin = min((_indent(lines[at - 1]) for at in shown if lines[at - 1].strip()), default=0)
    rows = []
    for at in shown:
        cuts = [cut for place in spans if (cut := _cut(place, at, lines[at - 1], margin)) is not None]
        rows.append(_row(at, _marked(lines[at - 1], margin, cuts), at == first.line))
    return _listing(rows, f"Source around {name}")


def _listing(rows: list[Markup], label: str) -> Markup:
    # Long lines scroll within the block, which a keyboard must reach.
    return tag("pre", tag("code", *rows), class_="code", tabindex=0, role="group", aria_label=label)


def _row(number: int, content: Markup, is_hit: bool) -> Markup:
    mark = tag("span", "▸" if is_hit else " ", class_="at", aria_hidden="true")
    label = tag("span", f"{number:>5}", class_="no")
    return tag("span", mark, label, "  ", content, Markup("\n"), class_="hit" if is_hit else None)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t\f"))


def _cut(place: Place, at: int, line: str, margin: int) -> tuple[int, int] | None:
    """The place of an expression on a line: offsets from 0."""
    if (place.line, place.column) == (place.end_line, place.end_column) or not place.line <= at <= place.end_line:
        return None
    start = place.column - 1 if at == place.line else _indent(line)
    end = place.end_column - 1 if at == place.end_line else len(line)
    start, end = max(start, margin), min(end, len(line), WIDEST)
    return (start, end) if start < end else None


def _marked(line: str, margin: int, cuts: list[tuple[int, int]]) -> Markup:
    """A line with some stretches marked; those within others are not marked again."""
    parts: list[Markup] = []
    done = margin
    for start, end in sorted(cuts):
        if start >= done:
            parts += [_piece(line[done:start]), tag("mark", _piece(line[start:end]))]
            done = end
    rest = line[done:WIDEST]
    return join(parts, _piece(rest + "…" if len(line) > WIDEST else rest))


def _piece(part: str) -> Markup:
    return text(part.replace("\t", _TAB).replace("\f", ""), len(part) * len(_TAB) + 1)

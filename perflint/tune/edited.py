"""Applies edits to the text of a file, or to some lines of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from itertools import takewhile

from perflint.findings import Edit, Span
from perflint.source.text import Source


def edited(source: Source, edits: Iterable[Edit], within: Span | None = None) -> str:
    """The text with some edits, or the lines of it that a span covers. Outer edits win over inner ones."""
    starts = [0]
    for line in source.lines:
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        return starts[line - 1] + column - 1 if line <= len(source.lines) else starts[-1]

    begin, end = (0, starts[-1])
    if within is not None:
        begin, end = place(within.line, 1), place(within.end_line, 1)
    parts, at = [], begin
    found = [(place(e.span.line, e.span.column), place(e.span.end_line, e.span.end_column), e.text) for e in edits]
    for first, last, text in sorted(found, key=lambda each: (each[0], -each[1])):
        if first < at or last > end:
            continue
        parts += [source.text[at:first], text]
        at = last
    parts.append(source.text[at:end])
    text = "".join(parts)
    return text if within is None or not text or text.endswith("\n") else text + "\n"


def behind_imports(body: Sequence[ast.stmt]) -> tuple[int, Sequence[ast.stmt]] | None:
    """The line behind the first imports of a file, and these; None if there are none, or another statement is there."""
    start = 1 if body and isinstance(body[0], ast.Expr) else 0
    imports = list(takewhile(lambda each: isinstance(each, (ast.Import, ast.ImportFrom)), body[start:]))
    line = (imports[-1].end_lineno or 0) + 1 if imports else 0
    rest = body[start + len(imports) :]
    return None if not imports or (rest and rest[0].lineno < line) else (line, imports)

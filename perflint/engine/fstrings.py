"""Fixes in f-strings, which may show the code of their expressions, and cannot hold all code before Python 3.12."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Edit, Finding, Span
from perflint.frozen import replace
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.source.text import Source

_SHOWS = re.compile(r"[\s)]*=\s*[!:}]")
"""The text behind an expression whose code is printed: `f"{loss.item()=}"`."""
_LATER = frozenset("'\"\\#\n")
"""Characters that an expression in an f-string may hold from Python 3.12 on."""


def fitting(finding: Finding, model: Model) -> Finding:
    """The finding without a fix that would change the text of an f-string, or that needs a new Python for it."""
    fix = finding.fix
    if fix is None or not model.nodes(ast.JoinedStr):
        return finding
    fields = _fields(model)
    if all(_fits(model.source, edit, span) for edit in fix.edits for span in fields if _is_in(edit.span, span)):
        return finding
    return replace(finding, fix=None)


@once
def _fields(model: Model) -> tuple[Span, ...]:
    """The expressions in the f-strings of a file."""
    return tuple(_expressions(model))


def _expressions(model: Model) -> Iterator[Span]:
    for text in model.nodes(ast.JoinedStr):
        for part in text.values:
            if isinstance(part, ast.FormattedValue):
                yield model.source.span(part.value)


def _is_in(inner: Span, outer: Span) -> bool:
    begin, end = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return begin <= (inner.line, inner.column) and (inner.end_line, inner.end_column) <= end


def _fits(source: Source, edit: Edit, field: Span) -> bool:
    """True if an edit within an expression of an f-string changes nothing that is printed, and is valid there."""
    behind = Span(field.end_line, field.end_column, field.end_line, len(source.lines[field.end_line - 1]) + 1)
    if _SHOWS.match(source.segment(behind)):
        return False
    return _LATER.intersection(edit.text) <= _LATER.intersection(source.segment(edit.span))

"""The fix that leaves a copy of a tensor out."""

from __future__ import annotations

import ast
import re

from perflint.findings import Edit, Fix, Safety, Span
from perflint.semantics.sites import CallSite

_SPACE = re.compile(r"[\s\\]+\Z")
"""White space, also with backslashes that continue a line."""
_OPEN = (ast.Assign, ast.AnnAssign, ast.Return, ast.Call, ast.keyword, ast.Tuple, ast.List)
"""Nodes around an operation that needs no brackets: it is the whole value, an argument or a member."""


def without_clone(site: CallSite, safety: Safety) -> Fix | None:
    """The fix that removes `.clone()` or `.contiguous()`; None if the call has another form.

    White space and a backslash before the dot go with it, and so do brackets that only the method needed.
    """
    source, func = site.model.source, site.node.func
    span = source.span(site.node)
    text = source.segment(span)
    if not isinstance(func, ast.Attribute) or not text.endswith((".clone()", ".contiguous()")):
        return None
    kept = _SPACE.sub("", text[: text.rfind(".")])
    made = source.span(func.value)
    if kept == f"({source.segment(made)})" and _needs_no_brackets(site, func.value):
        opening = Span(span.line, span.column, made.line, made.column)
        edits = [Edit(opening, ""), Edit(Span(made.end_line, made.end_column, span.end_line, span.end_column), "")]
    else:
        *above, last = kept.split("\n")
        column = len(last) + (1 if above else span.column)
        edits = [Edit(Span(span.line + len(above), column, span.end_line, span.end_column), "")]
    return Fix("Leave the copy out", safety, tuple(edits))


def _needs_no_brackets(site: CallSite, made: ast.expr) -> bool:
    """True if an operation on one line needs no brackets where a call stands."""
    span = site.model.source.span(site.node)
    before = site.model.source.lines[span.line - 1][: span.column - 1]
    return (
        made.lineno == made.end_lineno
        # `return(a + b).clone()`: the bracket parts the keyword from the operation.
        and not before[-1:].isidentifier()
        and isinstance(made, (ast.BinOp, ast.UnaryOp, ast.Call, ast.Subscript))
        and isinstance(site.model.parent(site.node), _OPEN)
    )

"""Parts of a line that may be skipped when the line runs. A trace records whole lines."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from perflint.findings import Span
from perflint.source.text import Source


def may_be_skipped(source: Source, span: Span, ran: Iterable[int]) -> bool:
    """True if all lines of a span that ran hold a condition, too, that decides whether the span runs."""
    lines = set(ran)
    for node in ast.walk(source.tree):
        for decides, part in _conditional(node):
            before = range(decides[0].lineno, (decides[-1].end_lineno or decides[-1].lineno) + 1)
            if lines <= set(before) and _is_within(span, source.span(part)):
                return True
    return False


def _is_within(inner: Span, outer: Span) -> bool:
    starts = (outer.line, outer.column) <= (inner.line, inner.column)
    return starts and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)


def _conditional(node: ast.AST) -> Iterator[tuple[Sequence[ast.expr], ast.expr | ast.stmt]]:
    """The parts of a node that may not run, each with the expressions that run before it and decide it."""
    match node:
        case ast.BoolOp(values=values):
            yield from ((values[:at], part) for at, part in enumerate(values) if at)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield from (((test,), part) for part in (body, orelse))
        case ast.If(test=test, body=statements):
            yield from (((test,), part) for part in statements)
        case ast.Assert(test=test, msg=ast.expr() as message):
            yield (test,), message
        case ast.Lambda(body=body):
            yield (node,), body

"""Parts of code that a trace does not tell apart: an iterator and the code that runs it, and the parts of one line."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from perflint.findings import Span
from perflint.source.text import Source


def iterations(source: Source) -> dict[Span, Span]:
    """The code that runs an iterator, by the position that Python gives for its calls.

    For the iterator of a `for` statement, Python gives the whole statement: the code is its head. For the iterator that
    `a, b = map(int, x)` unpacks, Python gives the targets: the code is the targets and the value.
    """
    found = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.stmt) and (end := _end(node)) is not None:
            found[source.span(node)] = _from_to(source, node, end)
        elif isinstance(node, ast.Assign):
            unpacking = (each for each in node.targets if isinstance(each, (ast.Tuple, ast.List)))
            found |= {source.span(each): _from_to(source, each, node.value) for each in unpacking}
    return found


def may_be_skipped(source: Source, span: Span, ran: Iterable[int]) -> bool:
    """True if all lines of a span that ran hold a condition, too, that decides whether the span runs."""
    lines = set(ran)
    for node in ast.walk(source.tree):
        for decides, part in _conditional(node):
            before = range(decides[0].lineno, (decides[-1].end_lineno or decides[-1].lineno) + 1)
            if lines <= set(before) and source.span(part).contains(span):
                return True
    return False


def _from_to(source: Source, begin: ast.stmt | ast.expr, end: ast.expr) -> Span:
    first, last = source.span(begin), source.span(end)
    return Span(first.line, first.column, last.end_line, last.end_column)


def _end(node: ast.AST) -> ast.expr | None:
    """The last expression of the head of a compound statement."""
    match node:
        case ast.For(iter=end) | ast.AsyncFor(iter=end) | ast.While(test=end) | ast.If(test=end):
            return end
        case ast.With(items=[*_, last]) | ast.AsyncWith(items=[*_, last]):
            return last.optional_vars or last.context_expr
        case ast.Match(subject=end):
            return end
    return None


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

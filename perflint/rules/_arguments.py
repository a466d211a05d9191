"""The places of the arguments of a call."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from perflint.findings import Edit, Span
from perflint.fixes.edits import with_argument, within
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import keyword
from perflint.semantics.values import Instance
from perflint.source.concrete import cst
from perflint.source.text import Source

_COMMENT = re.compile(r"#[^\r\n]*")


def passed(call: ast.Call, made: Instance, name: str) -> ast.expr | None:
    """The expression that a constructor call passes for a parameter; None if it passes none, or hides it."""
    direct = keyword(call, name)
    if direct is not None:
        return direct
    names = [each for each, _ in made.arguments or ()]
    if name not in names:
        return None
    # Arguments are kept in the order of the call, positional ones first.
    position = names.index(name)
    if position >= len(call.args) or any(isinstance(each, ast.Starred) for each in call.args[: position + 1]):
        return None
    return call.args[position]


@once
def _by_place(model: Model) -> Mapping[tuple[int, int, str], ast.Call]:
    """The calls of a file, by position and by the full name of the called function."""
    return {(call.lineno, call.col_offset, model.target(call)): call for call in model.nodes(ast.Call)}


def call_of(model: Model, made: Instance) -> ast.Call | None:
    """The call of a file that made an object; None if another file made it."""
    origin = made.origin
    if origin is None or origin.module != model.module.name:
        return None
    return _by_place(model).get((origin.line, origin.column, made.cls))


def with_arguments(call: cst.Call | None, *added: str) -> cst.Call | None:
    """A call with more arguments at its end; None if it takes no others."""
    for text in added:
        call = None if call is None else with_argument(call, text)
    return call


def dropped(source: Source, call: ast.Call, argument: ast.expr | ast.keyword) -> Edit:
    """The edit that takes one argument out of a call."""
    written: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    given = sorted(written, key=lambda each: (each.lineno, each.col_offset))
    index, span = given.index(argument), source.span(argument)
    rest = source.lines[span.end_line - 1][span.end_column - 1 :].strip().removeprefix(",").lstrip()
    if len(given) > 1 and _starts_line(source, span) and rest.startswith("#"):
        # Its comment goes with it: the argument above has its own.
        return Edit(Span(span.line, 1, span.end_line + 1, 1), "")
    if index:
        before = source.span(given[index - 1])
        between = Span(before.end_line, before.end_column, span.line, span.column)
        comma = within(source, between, *_comma(source.segment(between)))
        span = Span(comma.line, comma.column, span.end_line, span.end_column)
    elif len(given) > 1:
        after = source.span(given[1])
        span = Span(span.line, span.column, after.line, after.column)
    else:
        # With the comma and the lines that were there for it alone.
        func, end = source.span(call.func), source.span(call)
        whole = Span(func.end_line, func.end_column, end.end_line, end.end_column)
        if "#" not in source.segment(whole):
            return Edit(whole, "()")
        rest = source.segment(Span(span.end_line, span.end_column, end.end_line, end.end_column))
        span = Span(span.line, span.column, span.end_line, span.end_column + len(rest) - len(rest.lstrip(" ,")))
    return Edit(span, "")


def _starts_line(source: Source, span: Span) -> bool:
    return not source.lines[span.line - 1][: span.column - 1].strip()


def _comma(text: str) -> tuple[int, int]:
    """The start and end of the comma in the text between two arguments, which may also hold brackets and comments."""
    at = 0
    while text[at] != ",":
        comment = _COMMENT.match(text, at)
        at = at + 1 if comment is None else comment.end()
    return at, at + 1

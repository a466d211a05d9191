"""Edits from nodes: how a rule writes down what its fix changes.

Each helper returns the smallest edits that do the job, so that comments, formatting and
the edits of other fixes survive beside them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from perflint.findings import Edit, Span
from perflint.source.concrete import code, cst
from perflint.source.text import Source

_TOKEN = re.compile(r"\w+|\r\n|.", re.DOTALL)
_NEWLINE = re.compile(r"(?<!\r)\n")


def replace(source: Source, span: Span, new: cst.CSTNode | str) -> Edit:
    """Replace what is at `span`, leaving the tokens that both ends share alone."""
    old = source.segment(span)
    text = in_newlines_of(source, span.line, new if isinstance(new, str) else code(new))
    before, after = _TOKEN.findall(old), _TOKEN.findall(text)
    shortest = min(len(before), len(after))
    head = 0
    while head < shortest and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < shortest - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    start = len("".join(before[:head]))
    end = len(old) - len("".join(before[len(before) - tail :]))
    return Edit(within(source, span, start, end), "".join(after[head : len(after) - tail]))


def in_newlines_of(source: Source, line: int, text: str) -> str:
    """`text` with the newlines that the file uses at a line."""
    newline = newline_at(source, line)
    return text if newline == "\n" else _NEWLINE.sub(newline, text)


def newline_at(source: Source, line: int) -> str:
    r"""How a line ends; for a line without an end, how the one before it does; "\n" if none does."""
    for number in (line, line - 1, 1):
        if 1 <= number <= len(source.lines):
            text = source.lines[number - 1]
            ending = text[len(text.rstrip("\r\n")) :]
            if ending:
                return ending
    return "\n"


def within(source: Source, span: Span, start: int, end: int) -> Span:
    """The span of the characters `start` to `end` of what is at `span`."""
    return Span(*_advance(source, span, start), *_advance(source, span, end))


def _advance(source: Source, span: Span, count: int) -> tuple[int, int]:
    line, column = span.line, span.column
    while line < span.end_line:
        rest = len(source.lines[line - 1]) - column + 1
        if count < rest:
            break
        count -= rest
        line, column = line + 1, 1
    return line, column + count


def insert(line: int, column: int, text: str) -> Edit:
    """Insert before the character at a position."""
    return Edit(Span(line, column, line, column), text)


def argument(text: str) -> cst.Arg:
    """The argument that `text` spells: `x`, `name=x`, `*x` or `**x`."""
    call = cst.parse_expression(f"f({text})")
    assert isinstance(call, cst.Call)
    (found,) = call.args
    return found


def with_one_more(source: Source, call: ast.Call, new: str) -> Edit | None:
    """The edit that adds an argument at the end of a call, or None if the call takes no other."""
    written = source.concrete(call)
    assert isinstance(written, cst.Call)
    changed = with_argument(written, new)
    return None if changed is None else replace(source, source.span(call), changed)


def with_argument(call: cst.Call, new: str) -> cst.Call | None:
    """The call with one more argument at its end, laid out as the others are.

    None where the last argument is a bare generator expression, which allows no other.
    """
    added = argument(new)
    if not call.args:
        return _with_only(call, added)
    *others, last = call.args
    if _is_bare_generator(call):
        return None
    if isinstance(last.comma, cst.MaybeSentinel):
        return call.with_changes(args=[*others, *_after_last(call, last, added)])
    return call.with_changes(args=[*others, *_after_comma(call, last, last.comma, added)])


def _with_only(call: cst.Call, added: cst.Arg) -> cst.Call:
    """A call without arguments with its first, on a line of its own if its brackets are on two lines."""
    closing = call.whitespace_before_args
    if not isinstance(closing, cst.ParenthesizedWhitespace):
        return call.with_changes(args=[added])
    margin = closing.last_line.value
    before = closing.with_changes(last_line=cst.SimpleWhitespace(margin + one_level(margin)))
    comma = cst.Comma(whitespace_after=closing.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[]))
    return call.with_changes(args=[added.with_changes(comma=comma)], whitespace_before_args=before)


def _is_bare_generator(call: cst.Call) -> bool:
    value = call.args[0].value
    return len(call.args) == 1 and isinstance(value, cst.GeneratorExp) and not value.lpar


def _after_last(call: cst.Call, last: cst.Arg, added: cst.Arg) -> list[cst.Arg]:
    """The last argument without a trailing comma, and the new one behind it."""
    spread = _spread(call)
    if spread is None:
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        closing = last.whitespace_after_arg
        return [
            last.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace("")),
            added.with_changes(whitespace_after_arg=closing),
        ]
    closing = last.whitespace_after_arg
    if not isinstance(closing, cst.ParenthesizedWhitespace):
        comma = cst.Comma(whitespace_after=spread)
        return [last.with_changes(comma=comma), added]
    behind = closing.with_changes(first_line=cst.TrailingWhitespace())
    # A formatter puts a comma behind the last of several lines, and none behind a single argument.
    with_comma = added.with_changes(comma=cst.Comma(whitespace_after=behind))
    return [
        last.with_changes(
            comma=cst.Comma(whitespace_after=spread.with_changes(first_line=closing.first_line)),
            whitespace_after_arg=cst.SimpleWhitespace(""),
        ),
        with_comma if len(call.args) == 1 else added.with_changes(whitespace_after_arg=behind),
    ]


def _after_comma(call: cst.Call, last: cst.Arg, comma: cst.Comma, added: cst.Arg) -> list[cst.Arg]:
    """The last argument with a trailing comma, and the new one behind it with one too."""
    spread, closing = _spread(call), comma.whitespace_after
    if spread is None or not isinstance(closing, cst.ParenthesizedWhitespace):
        between = cst.Comma(whitespace_after=spread or cst.SimpleWhitespace(" "))
        return [last.with_changes(comma=between), added.with_changes(comma=comma)]
    return [
        last.with_changes(
            comma=comma.with_changes(whitespace_after=spread.with_changes(first_line=closing.first_line))
        ),
        added.with_changes(comma=cst.Comma(whitespace_after=closing.with_changes(first_line=cst.TrailingWhitespace()))),
    ]


def _spread(call: cst.Call) -> cst.ParenthesizedWhitespace | None:
    """The white space between arguments that stand on lines of their own; None where the last does not."""
    if len(call.args) > 1:
        comma = call.args[-2].comma
        before = comma.whitespace_after if isinstance(comma, cst.Comma) else None
    else:
        before = call.whitespace_before_args
    if not isinstance(before, cst.ParenthesizedWhitespace):
        return None
    return before.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])


def indentation(source: Source, line: int) -> str:
    """The white space that a line starts with."""
    text = source.lines[line - 1]
    return text[: len(text) - len(text.lstrip(" \t\f"))]


def one_level(margin: str) -> str:
    """The white space that indents a block once more than its margin."""
    return "\t" if "\t" in margin else "    "


def under(source: Source, statements: Sequence[ast.stmt], head: str) -> tuple[Edit, ...] | None:
    """The edits that put statements of a block into that of a `with`, whose first line is `head`.

    None if that changes a text in them, or if they share a line with others.
    """
    first, last = source.span(statements[0]), source.span(statements[-1])
    margin = indentation(source, first.line)
    if len(margin) != first.column - 1 or ";" in source.lines[last.end_line - 1]:
        return None
    for node in (each for statement in statements for each in ast.walk(statement)):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno != node.lineno:
            return None
    unit = one_level(margin)
    opening = in_newlines_of(source, first.line, f"{head}\n{margin}{unit}")
    others = (line for line in range(first.line + 1, last.end_line + 1) if source.lines[line - 1].strip())
    return insert(first.line, first.column, opening), *(insert(line, 1, unit) for line in others)


def delete_statement(source: Source, statement: ast.stmt, body: Sequence[ast.stmt]) -> Edit:
    """Delete a simple statement of a block with its line and the comment that ends it.

    A block must hold something: the last statement of `body` becomes `pass`. A statement
    that shares its line with others goes with the semicolon that parts them.
    """
    span = source.span(statement)
    if len(body) == 1:
        return Edit(span, "pass")
    index = body.index(statement)
    before = source.span(body[index - 1]) if index else None
    after = source.span(body[index + 1]) if index + 1 < len(body) else None
    if after is not None and after.line == span.end_line:
        return Edit(Span(span.line, span.column, after.line, after.column), "")
    if before is not None and before.end_line == span.line:
        return Edit(Span(before.end_line, before.end_column, span.end_line, span.end_column), "")
    if _starts_line(source, span):
        return Edit(Span(span.line, 1, span.end_line + 1, 1), "")
    # A backslash at the end of a line parts it from another statement.
    return Edit(span, "pass")


def with_last_comments(source: Source, span: Span) -> Span:
    """The span of a compound statement with the comments below it that are indented as its body is."""
    depth, end = len(indentation(source, span.line)), span
    for number in range(span.end_line + 1, len(source.lines) + 1):
        line = source.lines[number - 1].rstrip()
        if line.strip() and (not line.lstrip().startswith("#") or len(indentation(source, number)) <= depth):
            break
        if line.strip():
            end = Span(span.line, span.column, number, len(line) + 1)
    return end


def _starts_line(source: Source, span: Span) -> bool:
    above = source.lines[span.line - 2] if span.line > 1 else ""
    return not source.lines[span.line - 1][: span.column - 1].strip(" \t\f") and not above.rstrip().endswith("\\")

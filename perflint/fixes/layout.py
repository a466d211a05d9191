"""Break lines that fixes have made too long, as black would: at their last bracket, or one argument in a line.

Chains of calls, long sums and what stands in brackets of its own style are left to the project's formatter. Only
white space and a trailing comma are inserted, so that places in the text can still be followed.
"""

from __future__ import annotations

import keyword
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from perflint.findings import Edit, Span
from perflint.fixes.comments import is_for_tools
from perflint.fixes.edits import in_newlines_of, indentation, insert, one_level
from perflint.frozen import dataclass
from perflint.source.text import Source
from perflint.source.tokens import tokens

_LIMITS = (88, 100, 120)
"""Line lengths that formatters are commonly set to, in characters; 88 is black's own."""
_NARROW = (79, 80)
"""The line lengths of PEP 8. Files of at least `_ENOUGH_LINES`, some of them nearly as long, keep them knowingly."""
_ENOUGH_LINES = 100
_NEARLY, _SOME = 6, 5
_TOLERATED = 0.01
"""The share of a file's lines that may be longer than its limit: strings and links cannot be broken."""
_BREAKABLE = re.compile(r"[^#]*[(\[{][^#]*|from [^#]+")
"""Lines of code that formatters can break: they have a bracket or are imports, and have no comment."""
_LONG_STRING = 40
"""Characters of a string that may make its line too long."""
_LEAST = 8
"""Characters in a pair of brackets that is worth breaking."""
_OPENING = dict(zip(")]}", "([{", strict=True))
_WITHIN_A_PART = frozenset("()[]{}.=:")
"""Operators outside of brackets that a line may have that is broken in one of its brackets."""
_PARTING = frozenset({"and", "or", "else", "is", "lambda"})
"""Keywords that stand between operands."""
_SUMS, _PRODUCTS = frozenset("+-"), frozenset({"*", "**", "/", "//", "%", "@"})

_Lines = Mapping[int, Sequence[tokenize.TokenInfo]]
"""The tokens of each line."""


def breaks(before: Source, after: Source, line_length: int | None = None) -> list[Edit]:
    """The edits of `after` that break its new lines, which `before` does not have, if they are too long.

    The limit is `line_length`, or else the length that the lines of `before` keep. The edits break one level of
    brackets: what they leave may be broken again.
    """
    known = set(before.lines)
    added = {number: len(line.rstrip()) for number, line in enumerate(after.lines, 1) if line not in known}
    if max(added.values(), default=0) <= (line_length or min(_NARROW)):
        return []
    limit = line_length or line_length_of(before)
    if limit is None or max(added.values()) <= limit:
        return []
    tokens = _by_line(after)
    return [edit for number in added if added[number] > limit for edit in _broken(after, number, tokens, limit)]


@lru_cache(maxsize=4)
def line_length_of(source: Source) -> int | None:
    """The line length that a file keeps, in characters; None if it keeps none.

    A formatter leaves no longer line that it can break. In files that are formatted by hand, a few lines are longer.
    """
    lengths = [len(line.rstrip()) for line in source.lines]
    for limit in _NARROW:
        if len(lengths) >= _ENOUGH_LINES and max(lengths) <= limit:
            if sum(length > limit - _NEARLY for length in lengths) >= _SOME:
                return limit
    text = _text(source)
    code = [line.rstrip() for number, line in enumerate(source.lines, 1) if number not in text]
    tolerated = len(lengths) * _TOLERATED
    kept = [limit for limit in _LIMITS if sum(len(line) > limit for line in code) <= tolerated]
    longest = max((len(line) for line in code if _BREAKABLE.fullmatch(line)), default=0)
    return next((limit for limit in kept if longest <= limit), kept[0] if kept else None)


def _text(source: Source) -> set[int]:
    """The lines that are comments, or hold strings that are long or go on in other lines."""
    found: set[int] = set()
    for token in tokens(source):
        is_alone = token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
        is_long = "STRING" in tokenize.tok_name[token.type] and len(token.string) >= _LONG_STRING
        if is_alone or is_long or token.start[0] != token.end[0]:
            found.update(range(token.start[0], token.end[0] + 1))
    return found


def _by_line(source: Source) -> dict[int, list[tokenize.TokenInfo]]:
    """The tokens outside of strings by the line that they stand in, without those that span lines."""
    found: dict[int, list[tokenize.TokenInfo]] = {}
    strings = 0
    for token in tokens(source):
        kind = tokenize.tok_name[token.type]
        strings += kind.endswith("STRING_START")
        if not strings and token.start[0] == token.end[0] and token.string.strip():
            found.setdefault(token.start[0], []).append(token)
        strings -= kind.endswith("STRING_END")
    return found


@dataclass(frozen=True, slots=True)
class _Bracket:
    """A pair of brackets with something in it: the indices of its tokens, and of the commas right within it."""

    opening: int
    closing: int
    commas: tuple[int, ...]


def _broken(source: Source, number: int, lines: _Lines, limit: int) -> Iterator[Edit]:
    tokens = lines.get(number, ())
    if tokens and tokens[-1].type == tokenize.COMMENT and is_for_tools(tokens[-1].string):
        # The comment is about this line.
        return
    if _is_all_of_a_call(lines, number):
        yield from _one_in_a_line(source, number, tokens)
        return
    bracket = _bracket(source, number, tokens, limit)
    if bracket is None:
        yield from _unpacked(source, number, tokens, limit)
        return
    indent = indentation(source, number)
    inner = indent + one_level(indent)
    newline = in_newlines_of(source, number, "\n")
    first, last = tokens[bracket.opening], tokens[bracket.closing]
    content = last.start[1] - first.end[1]
    yield insert(number, first.end[1] + 1, newline + inner)
    if len(inner.expandtabs(4)) + content > limit:
        yield from _parted(number, tokens, bracket.commas, bracket.closing, newline + inner)
        if bracket.commas and bracket.commas[-1] + 1 < bracket.closing:
            # One element takes no comma: it would make a tuple of it in a subscript.
            yield insert(number, last.start[1] + 1, f",{newline}{indent}")
            return
    yield insert(number, last.start[1] + 1, newline + indent)


def _unpacked(source: Source, number: int, tokens: Sequence[tokenize.TokenInfo], limit: int) -> Iterator[Edit]:
    """Put the value of `a, b = value` into brackets, or else its targets, one in a line."""
    at = next((index for index in range(1, len(tokens)) if _assigns(tokens, index)), None)
    pairs = _pairs(tokens)
    if at is None or at + 1 == len(tokens) or not pairs or number not in _statements(source):
        return
    commas = _outermost(tokens[:at])
    if not commas or commas[-1] + 1 == at or _outermost(tokens[at + 1 :]):
        return
    if any(_assigns(tokens, index) for index in range(at + 1, len(tokens))):
        return
    indent = indentation(source, number)
    newline = in_newlines_of(source, number, "\n")
    inner = newline + indent + one_level(indent)
    value, end = tokens[at + 1].start[1], len(source.lines[number - 1].rstrip())
    if value + 1 <= limit and len(inner.strip("\r\n").expandtabs(4)) + end - value <= limit:
        yield insert(number, value + 1, f"({inner}")
        yield insert(number, end + 1, f"{newline}{indent})")
        return
    yield insert(number, tokens[0].start[1] + 1, f"({inner}")
    yield from _parted(number, tokens, commas, at, inner)
    yield insert(number, tokens[at - 1].end[1] + 1, f",{newline}{indent})")


def _parted(
    number: int, tokens: Sequence[tokenize.TokenInfo], commas: Sequence[int], end: int, between: str
) -> Iterator[Edit]:
    """Put what follows commas on lines of its own."""
    for index in commas:
        if index + 1 < end:
            start, following = tokens[index].end[1] + 1, tokens[index + 1].start[1] + 1
            yield Edit(Span(number, start, number, following), between)


def _is_all_of_a_call(lines: _Lines, number: int) -> bool:
    """True if a line has all arguments of a call, and at least two."""
    above = [token for token in lines.get(number - 1, ()) if token.type != tokenize.COMMENT]
    below = lines.get(number + 1, ())
    tokens = lines.get(number, ())
    if len(above) < 2 or not below or above[-1].string != "(" or below[0].string != ")":
        return False
    callee = above[-2]
    is_call = callee.string in (")", "]") or (callee.type == tokenize.NAME and not keyword.iskeyword(callee.string))
    commas = _outermost(tokens)
    return is_call and bool(commas) and commas != (len(tokens) - 1,) and tokens[-1].type != tokenize.COMMENT


def _one_in_a_line(source: Source, number: int, tokens: Sequence[tokenize.TokenInfo]) -> Iterator[Edit]:
    """Each argument on a line of its own, with a comma behind the last."""
    between = in_newlines_of(source, number, "\n") + indentation(source, number)
    yield from _parted(number, tokens, _outermost(tokens) or (), len(tokens), between)
    if tokens[-1].string != ",":
        yield insert(number, tokens[-1].end[1] + 1, ",")


def _outermost(tokens: Sequence[tokenize.TokenInfo]) -> tuple[int, ...] | None:
    """The commas of a line outside of its brackets; None if these are not closed in it."""
    depth, commas = 0, []
    for index, token in enumerate(tokens):
        if token.type == tokenize.OP:
            depth += (token.string in _OPENING.values()) - (token.string in _OPENING)
            if depth < 0:
                return None
            if token.string == "," and not depth:
                commas.append(index)
    return None if depth else tuple(commas)


def _bracket(source: Source, number: int, tokens: Sequence[tokenize.TokenInfo], limit: int) -> _Bracket | None:
    """The last pair of brackets of a line after whose opening, and from whose closing on, the line is short enough.

    None if the line has parts that are not in brackets, which black would part instead.
    """
    found = _pairs(tokens)
    if found is None or not _may_be_broken(tokens, found, number in _statements(source)):
        return None
    indent = len(indentation(source, number).expandtabs(4))
    end = len(source.lines[number - 1].rstrip())
    for each in reversed(found):
        first, last = tokens[each.opening], tokens[each.closing]
        is_worth_it = last.start[1] - first.end[1] >= _LEAST
        if is_worth_it and first.end[1] <= limit and indent + end - last.start[1] <= limit:
            return each
    return None


def _pairs(tokens: Sequence[tokenize.TokenInfo]) -> list[_Bracket] | None:
    """The outermost pairs of brackets of a line; None if they are not closed in it."""
    stack: list[tuple[int, list[int]]] = []
    found: list[_Bracket] = []
    for index, token in enumerate(tokens):
        if token.type == tokenize.OP and token.string in _OPENING.values():
            stack.append((index, []))
        elif token.type == tokenize.OP and token.string in _OPENING:
            if stack:
                opening, commas = stack.pop()
                if not stack:
                    found.append(_Bracket(opening, index, tuple(commas)))
            elif found or (index and tokens[index - 1].string not in _OPENING):
                # It closes what another line has opened, behind parts of this one.
                return None
        elif stack and token.string == ",":
            stack[-1][1].append(index)
    return None if stack else found


def _may_be_broken(tokens: Sequence[tokenize.TokenInfo], found: Sequence[_Bracket], is_statement: bool) -> bool:
    """True if black splits a line at a bracket, and not at its operands or members.

    A statement may have two, if its last bracket ends it; products in a sum count as one. The operator that begins a
    line parts it from the line above.
    """
    within = {index for each in found for index in range(each.opening, each.closing + 1)}
    begin = max(
        (index + 1 for index in range(1, len(tokens)) if index not in within and _assigns(tokens, index)),
        default=int(not is_statement),
    )
    parting = [tokens[at].string for at in range(begin, len(tokens)) if at not in within and _parts(tokens, at)]
    if not _SUMS.isdisjoint(parting):
        parting = [each for each in parting if each not in _PRODUCTS]
    ends = bool(found) and found[-1].closing == len(tokens) - 1
    return not parting or (len(parting) == 1 and is_statement and ends)


def _assigns(tokens: Sequence[tokenize.TokenInfo], index: int) -> bool:
    """True if a token is the `=` of an assignment. It has spaces around it; the `=` of an argument has none."""
    return tokens[index].string == "=" and tokens[index].start[1] > tokens[index - 1].end[1]


@lru_cache(maxsize=4)
def _statements(source: Source) -> frozenset[int]:
    """The lines that statements start in."""
    found, is_next = set(), True
    for token in tokens(source):
        if token.type == tokenize.NEWLINE:
            is_next = True
        elif is_next and token.string.strip() and token.type != tokenize.COMMENT:
            found.add(token.start[0])
            is_next = False
    return frozenset(found)


def _parts(tokens: Sequence[tokenize.TokenInfo], index: int) -> bool:
    """True if a token outside of brackets stands between operands or members: an operator, a comma, `if` behind one."""
    token = tokens[index]
    if token.type == tokenize.NAME:
        is_within = token.string in ("if", "for") and index > 0 and tokens[index - 1].string != "async"
        is_test = token.string == "in" and tokens[0].string not in ("for", "async")
        return token.string in _PARTING or is_within or is_test
    if token.type != tokenize.OP or token.string in _WITHIN_A_PART or token.string.endswith("="):
        return token.string in ("==", "!=", "<=", ">=")
    return token.string != "," or any(each.type != tokenize.COMMENT for each in tokens[index + 1 :])

"""Break lines that fixes have made too long at their last bracket, as black would.

Chains of calls and long sums are left to the project's formatter. Only white space and a trailing comma are
inserted, so that places in the text can still be followed.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator, Sequence

from perflint.findings import Edit, Span
from perflint.fixes.edits import in_newlines_of, indentation, insert
from perflint.frozen import dataclass
from perflint.source.text import Source

_LIMITS = (88, 100, 120)
"""Line lengths that formatters are commonly set to, in characters; 88 is black's own."""
_TOLERATED = 0.01
"""The share of a file's lines that may be longer than its limit: strings and links cannot be broken."""
_LEAST = 8
"""Characters in a pair of brackets that is worth breaking."""
_OPENING = dict(zip(")]}", "([{", strict=True))


def breaks(before: Source, after: Source) -> list[Edit]:
    """The edits of `after` that break its lines which `before` has not, where they exceed the length of its lines."""
    limit = _limit(before)
    if limit is None:
        return []
    known = set(before.lines)
    long = [number for number, line in enumerate(after.lines, 1) if len(line.rstrip()) > limit and line not in known]
    if not long:
        return []
    tokens = _by_line(after)
    return [edit for number in long for edit in _broken(after, number, tokens.get(number, []), limit)]


def _limit(source: Source) -> int | None:
    """The line length that a file keeps, in characters; None if it keeps none."""
    most = len(source.lines) * _TOLERATED
    for limit in _LIMITS:
        if sum(len(line.rstrip()) > limit for line in source.lines) <= most:
            return limit
    return None


def _by_line(source: Source) -> dict[int, list[tokenize.TokenInfo]]:
    """The tokens outside of strings by the line that they stand in, without those that span lines."""
    found: dict[int, list[tokenize.TokenInfo]] = {}
    strings = 0
    text = "".join(source.lines).replace("\r\n", "\n").replace("\r", "\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
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


def _broken(source: Source, number: int, tokens: Sequence[tokenize.TokenInfo], limit: int) -> Iterator[Edit]:
    bracket = _last_bracket(tokens)
    if bracket is None:
        return
    indent = indentation(source, number)
    inner = indent + ("\t" if "\t" in indent else "    ")
    newline = in_newlines_of(source, number, "\n")
    first, last = tokens[bracket.opening], tokens[bracket.closing]
    content = last.start[1] - first.end[1]
    yield insert(number, first.end[1] + 1, newline + inner)
    if len(inner.expandtabs(4)) + content > limit:
        for index in bracket.commas:
            if index + 1 < bracket.closing:
                start, end = tokens[index].end[1] + 1, tokens[index + 1].start[1] + 1
                yield Edit(Span(number, start, number, end), newline + inner)
        if bracket.commas and bracket.commas[-1] + 1 < bracket.closing:
            # One element takes no comma: it would make a tuple of it in a subscript.
            yield insert(number, last.start[1] + 1, f",{newline}{indent}")
            return
    yield insert(number, last.start[1] + 1, newline + indent)


def _last_bracket(tokens: Sequence[tokenize.TokenInfo]) -> _Bracket | None:
    """The last pair of brackets that opens and closes in a line, holds something and is in no other such pair."""
    stack: list[tuple[int, list[int]]] = []
    found: list[_Bracket] = []
    for index, token in enumerate(tokens):
        if token.type != tokenize.OP:
            continue
        if token.string in _OPENING.values():
            stack.append((index, []))
        elif token.string in _OPENING and stack:
            opening, commas = stack.pop()
            if token.start[1] - tokens[opening].end[1] >= _LEAST:
                found = [each for each in found if each.opening < opening]
                found.append(_Bracket(opening, index, tuple(commas)))
        elif token.string == "," and stack:
            stack[-1][1].append(index)
    # A bracket that is still open has the others within it: they are as far out as this line goes.
    return found[-1] if found else None

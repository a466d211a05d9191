"""Comments that silence findings: `# perflint: ignore`, `ignore-block` and `ignore-file`, and `# noqa`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cached_property

from perflint.config.selection import canonical
from perflint.findings import Finding, Span
from perflint.frozen import dataclass, field
from perflint.source.text import Source

# Compiled, and kept by `re`, when a file first has something to silence.
_WORTH_READING = r"(?i:noqa|perflint:)"
_CODE = r"[A-Z]{1,4}[0-9]{1,4}"
_SELECTOR = rf"(?:{_CODE}|[a-z0-9]+(?:-[a-z0-9]+)+)"
_NOQA = rf"(?i:#\s*noqa\b(?!-)(?:\s*:\s*(?P<selectors>{_SELECTOR}(?:[\s,]+{_SELECTOR})*))?)"
_DIRECTIVE = r"#\s*perflint:\s*(?P<what>[a-z]+(?:-[a-z]+)*)(?![\w-])(?P<list>\s*\[)?"
_NOQA_FILE = r"(?i:# flake8[:=]\s*noqa)"
_BARE = r"[\s:=(]*(?P<codes>(?i:TPF[0-9OIl]{0,3}|[A-Z]{2,4}[0-9]{3})\b(?:\s*,\s*(?i:[A-Z]{2,4}[0-9OIl]{1,3})\b)*)\)?"
"""Codes behind `ignore` that are not in brackets."""
_LIKE_IGNORE = r"(?:ignor|disabl|enabl|silenc|suppress|skip|allow|noqa|off\b)"
"""The beginnings of words that are meant to silence findings, but are not a directive."""

ALL = "ALL"
UNUSED = "TPF981"
"""The code of findings about comments that silence nothing."""


class Reach(Enum):
    """The code in which a comment silences findings; the value is its word."""

    LINE = "ignore"
    BLOCK = "ignore-block"
    FILE = "ignore-file"


_REACHES = {reach.value: reach for reach in Reach}


@dataclass(frozen=True, slots=True)
class Selector:
    """A word in the list of a comment, and its place."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment that silences findings, from its `#` to the end of its reason."""

    reach: Reach
    span: Span
    selectors: tuple[Selector, ...] | None
    """None for all rules."""
    reason: str = ""
    bare: Span | None = None
    """The place of a list of codes that is not in brackets."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A comment for perflint with a word that perflint does not know."""

    word: str
    span: Span


_NOQA_COMMENT = Comment(Reach.LINE, Span(0, 1, 0, 1), None)
"""Stands for all comments `# noqa`, which are not perflint's own."""
_Index = dict[str, Comment]
"""The comment that silences what a selector names."""


@dataclass(slots=True)
class _Comments:
    """The comments of a file by what they silence, and where a comment must stand that cannot stand on its line."""

    own: list[Comment] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)
    file: _Index = field(default_factory=dict)
    lines: dict[int, _Index] = field(default_factory=dict)
    blocks: dict[int, list[_Index]] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)
    present: set[int] = field(default_factory=set)


class Suppressions:
    """The comments of one file that silence findings, but `# noqa` where it is left to others.

    They are read when first asked for. If they do not count (`counts`), they silence nothing.
    """

    def __init__(self, source: Source, noqa: bool = True, counts: bool = True) -> None:
        self._source = source
        self._noqa = noqa
        self._counts = counts
        self._used: set[tuple[Comment, str]] = set()

    def cover(self, finding: Finding) -> bool:
        """True if a comment silences a finding.

        It stands in the line where the finding starts or ends, or, where a string or a
        backslash goes over the end of that line, at the end of the string or of the joined lines;
        or it stands in the header of a block around the finding, or is for the whole file.
        """
        return self.silencer(finding) is not None

    def silencer(self, finding: Finding) -> Comment | None:
        """The comment that silences a finding, or None."""
        comments = self._comments
        if comments is None:
            return None
        lines = dict.fromkeys((finding.span.line, finding.span.end_line))
        lines |= dict.fromkeys(comments.moved[line] for line in list(lines) if line in comments.moved)
        at_lines = [comments.lines[line] for line in lines if line in comments.lines]
        found: Comment | None = None
        for index in (*at_lines, *comments.blocks.get(finding.span.line, ()), comments.file):
            for key in _keys(finding):
                if key in index:
                    found = found or index[key]
                    self._used.add((index[key], key))
        return found

    @property
    def comments(self) -> list[Comment]:
        """The comments that are perflint's own."""
        return [] if self._comments is None else self._comments.own

    @property
    def unknown(self) -> list[Unknown]:
        """The comments with words that perflint does not know."""
        return [] if self._comments is None else self._comments.unknown

    def is_used(self, comment: Comment, selector: str) -> bool:
        """True if a comment has silenced a finding of what a selector names, of those that were asked about."""
        return (comment, canonical(selector)) in self._used

    def line_for_comment(self, line: int) -> int:
        """The line on which a comment must stand to silence the findings of a line."""
        comments = self._comments
        if comments is None:
            comments = _read(self._source, self._noqa)
        return comments.moved.get(line, line)

    @cached_property
    def _comments(self) -> _Comments | None:
        if not self._counts or not re.search(_WORTH_READING, self._source.text):
            return None
        return _read(self._source, self._noqa)


def _keys(finding: Finding) -> Iterator[str]:
    """The selectors that name the rule of a finding."""
    code = finding.code
    yield ALL
    yield finding.name
    yield from (code[:end] for end in range(1, len(code) + 1))


def _read(source: Source, noqa: bool) -> _Comments:
    import tokenize

    from perflint.source.tokens import tokens

    starts = {getattr(tokenize, name, None) for name in ("FSTRING_START", "TSTRING_START")} - {None}
    ends = {getattr(tokenize, name, None) for name in ("FSTRING_END", "TSTRING_END")} - {None}
    comments = _Comments()
    open_strings: list[int] = []
    for kind, text, (line, column), (end_line, _), _ in tokens(source):
        if kind == tokenize.COMMENT:
            comments.present.add(line)
            if noqa:
                _note_noqa(comments, text, line)
                # flake8, too, wants it on a line of its own.
                if re.match(_NOQA_FILE, text) and not source.lines[line - 1][:column].strip():
                    comments.file.setdefault(ALL, _NOQA_COMMENT)
            for found in _directives(text, line, column + 1):
                if isinstance(found, Comment):
                    comments.own.append(found)
                else:
                    comments.unknown.append(found)
        elif kind in starts:
            open_strings.append(line)
        elif kind in ends:
            _move(comments, open_strings.pop(), end_line)
        elif kind == tokenize.STRING and end_line > line:
            _move(comments, line, end_line)
    _join_continued(source, comments)
    _index(source, comments)
    return comments


def _note_noqa(comments: _Comments, text: str, line: int) -> None:
    for found in re.finditer(_NOQA, text):
        listed = found["selectors"]
        words = [ALL] if listed is None else [_normal(word) for word in re.split(r"[\s,]+", listed)]
        index = comments.lines.setdefault(line, {})
        for word in words:
            index.setdefault(word, _NOQA_COMMENT)


def _directives(text: str, line: int, column: int) -> Iterator[Comment | Unknown]:
    """The comments for perflint in the text of a comment that begins at a place."""
    at, last = 0, text.rfind("]")
    while found := re.compile(_DIRECTIVE).search(text, at):
        at = found.end()
        word = found["what"]
        reach = _REACHES.get(word)
        selectors: tuple[Selector, ...] | None = None
        bare: Span | None = None
        codes = re.compile(_BARE).match(text, at)
        if found["list"] is not None and last >= at:
            end = text.index("]", at)
            selectors = tuple(_selectors(text, at, end, line, column))
            at = end + 1
        elif codes is not None:
            selectors = tuple(_selectors(text, *codes.span("codes"), line, column))
            bare = Span(line, column + at, line, column + codes.end())
            at = codes.end()
        # A number of an issue, such as #12, is part of the reason.
        stop = text.find(" # ", at)
        rest = text[at : len(text) if stop < 0 else stop].rstrip()
        at += len(rest)
        reason = rest.strip(" \t-–—:")
        span = Span(line, column + found.start(), line, column + at)
        if reach is not None:
            yield Comment(reach, span, selectors, reason, bare)
        elif re.match(_LIKE_IGNORE, word):
            yield Unknown(word, span)


def _selectors(text: str, start: int, end: int, line: int, column: int) -> Iterator[Selector]:
    for word in re.compile(r"[^\s,]+").finditer(text, start, end):
        yield Selector(word[0], Span(line, column + word.start(), line, column + word.end()))


def _normal(word: str) -> str:
    # As for flake8, codes in lower case are none.
    return word.lower() if "-" in word else word


def _move(comments: _Comments, first: int, last: int) -> None:
    for line in range(first, last):
        comments.moved[line] = max(last, comments.moved.get(line, 0))


def _join_continued(source: Source, comments: _Comments) -> None:
    """Follow backslashes at ends of lines, and strings that begin where another ends, to the last line."""
    lines = source.lines
    for line in range(len(lines), 0, -1):
        last = comments.moved.get(line, line)
        joined = lines[last - 1].rstrip("\r\n").endswith("\\") and last not in comments.present
        if joined and last < len(lines):
            last += 1
        if last != line:
            comments.moved[line] = comments.moved.get(last, last)


def _index(source: Source, comments: _Comments) -> None:
    """Sort perflint's own comments by the code that they are for."""
    in_blocks: dict[int, list[Comment]] = {}
    for comment in comments.own:
        if comment.reach is Reach.FILE:
            _add(comments.file, comment)
        elif comment.reach is Reach.LINE:
            _add(comments.lines.setdefault(comment.span.line, {}), comment)
        else:
            in_blocks.setdefault(comment.span.line, []).append(comment)
    for first, last, line in block_headers(source, in_blocks):
        index: _Index = {}
        for comment in in_blocks[line]:
            _add(index, comment)
        # Blocks are nested at most a hundred deep.
        for at in range(first, last + 1):
            comments.blocks.setdefault(at, []).append(index)


def _add(index: _Index, comment: Comment) -> None:
    words = [ALL] if comment.selectors is None else [canonical(each.text) for each in comment.selectors]
    for word in words:
        if index.get(word, _NOQA_COMMENT) is _NOQA_COMMENT:
            index[word] = comment


def block_headers(source: Source, lines: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """The first and the last line of each block in whose header one of some lines is, and that line.

    A header goes from the first decorator to the line above the body.
    """
    wanted = sorted(lines)
    if not wanted:
        return
    try:
        tree = source.tree
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    left = dict.fromkeys(wanted)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(node, ast.stmt) or not isinstance(body, list) or not body:
            continue
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        inner = body[0]
        below = min([inner.lineno, *(each.lineno for each in getattr(inner, "decorator_list", ()))])
        for line in range(first, max(below, node.lineno + 1)):
            if line in left:
                yield first, node.end_lineno or first, line

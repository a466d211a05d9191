"""Comments that silence findings: `# noqa`, `# perflint: ignore` and `# perflint: ignore-file`."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property

from perflint.findings import Finding
from perflint.frozen import dataclass
from perflint.source.text import Source

# Compiled, and kept by `re`, when a file first has something to silence.
_WORTH_READING = r"(?i:noqa|perflint:)"
_CODE = r"[A-Z]{1,4}[0-9]{1,4}"
_SELECTOR = rf"(?:{_CODE}|[a-z0-9]+(?:-[a-z0-9]+)+)"
_NOQA = rf"(?i:#\s*noqa\b(?!-)(?:\s*:\s*(?P<selectors>{_SELECTOR}(?:[\s,]+{_SELECTOR})*))?)"
_IGNORE = r"#\s*perflint:\s*(?P<what>ignore-file|ignore)(?![\w-])(?P<list>\s*\[)?"

_ALL = {"ALL"}
"""The selectors of a comment that lists no rules; others list codes, beginnings of codes and names."""


@dataclass(slots=True)
class _Comments:
    """The rules that the comments of a file silence, and where a comment must stand that cannot stand on its line."""

    file: set[str] = field(default_factory=set)
    lines: dict[int, set[str]] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)
    present: set[int] = field(default_factory=set)


class Suppressions:
    """The comments of one file that silence findings, but `# noqa` where it is left to others.

    They are read when first asked for.
    """

    def __init__(self, source: Source, noqa: bool = True) -> None:
        self._source = source
        self._noqa = noqa

    def cover(self, finding: Finding) -> bool:
        """True if a comment silences a finding.

        It stands in the line where the finding starts or ends, or, where a string or a
        backslash goes over the end of that line, at the end of the string or of the joined lines.
        """
        comments = self._comments
        if comments is None:
            return False
        if _names(comments.file, finding):
            return True
        lines = {finding.span.line, finding.span.end_line}
        lines |= {comments.moved[line] for line in lines if line in comments.moved}
        return any(_names(comments.lines[line], finding) for line in lines if line in comments.lines)

    @cached_property
    def _comments(self) -> _Comments | None:
        if not re.search(_WORTH_READING, self._source.text):
            return None
        return _read(self._source, self._noqa)


def _names(selectors: set[str], finding: Finding) -> bool:
    """True if selectors name the rule of a finding; takes the same time however many there are."""
    code = finding.code
    beginnings = (code[:end] for end in range(1, len(code) + 1))
    return not selectors.isdisjoint(("ALL", finding.name, *beginnings))


def _read(source: Source, noqa: bool) -> _Comments:
    import tokenize

    starts = {getattr(tokenize, name, None) for name in ("FSTRING_START", "TSTRING_START")} - {None}
    ends = {getattr(tokenize, name, None) for name in ("FSTRING_END", "TSTRING_END")} - {None}
    comments = _Comments()
    open_strings: list[int] = []
    for kind, text, (line, _), (end_line, _) in _tokens(source):
        if kind == tokenize.COMMENT:
            comments.present.add(line)
            _note(comments, text, line, noqa)
        elif kind in starts:
            open_strings.append(line)
        elif kind in ends:
            _move(comments, open_strings.pop(), end_line)
        elif kind == tokenize.STRING and end_line > line:
            _move(comments, line, end_line)
    _join_continued(source, comments)
    return comments


_Token = tuple[int, str, tuple[int, int], tuple[int, int]]


def _tokens(source: Source) -> Iterator[_Token]:
    import tokenize

    # tokenize wants the lines as Python splits them.
    lines = io.StringIO("".join(line.rstrip("\r\n") + "\n" for line in source.lines))
    try:
        for token in tokenize.generate_tokens(lines.readline):
            yield token.type, token.string, token.start, token.end
    except (tokenize.TokenError, SyntaxError):
        # The rest of the file is none that tokenize understands; what was read holds.
        return


def _note(comments: _Comments, text: str, line: int, noqa: bool) -> None:
    for found in re.finditer(_NOQA, text) if noqa else ():
        listed = found["selectors"]
        selectors = _ALL if listed is None else {_normal(word) for word in re.split(r"[\s,]+", listed)}
        comments.lines.setdefault(line, set()).update(selectors)
    for what, selectors in _ignored(text):
        silenced = comments.file if what == "ignore-file" else comments.lines.setdefault(line, set())
        silenced.update(selectors)


def _ignored(text: str) -> Iterator[tuple[str, set[str]]]:
    """The kind of each `perflint: ignore` in a comment, and the selectors that it lists."""
    at, last = 0, text.rfind("]")
    while found := re.compile(_IGNORE).search(text, at):
        at = found.end()
        if found["list"] is None or last < at:
            yield found["what"], _ALL
        else:
            end = text.index("]", at)
            yield found["what"], set(text[at:end].replace(",", " ").split())
            at = end + 1


def _normal(word: str) -> str:
    return word.lower() if "-" in word else word.upper()


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

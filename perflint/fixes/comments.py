"""Comments in what fixes replace: they go above the statement, or keep the fix from being applied."""

from __future__ import annotations

import re
import tokenize
from bisect import bisect_right
from collections import Counter
from functools import lru_cache

from perflint.findings import Edit
from perflint.fixes.edits import in_newlines_of, indentation, insert
from perflint.fixes.rewrite import Offsets, Piece, Rewrite
from perflint.source.text import Source

_FOR_TOOLS = re.compile(
    r"#\s*(type:|noqa|pragma|nosec|fmt:|isort:|ruff:|mypy:|flake8:|perflint:|pylint:|pyright:|pyre-|yapf:|!)", re.I
)
"""What a comment says that means its line, and no other."""


def rescued(source: Source, changed: Rewrite) -> list[Edit] | None:
    """Insertions of the comments that a rewrite of a source drops, above the statements that held them.

    Comments that go along with a deleted statement are none of them. None where one cannot be moved.
    """
    left = Counter(text for _, text in _comments(changed.text))
    lost: dict[Piece, list[str]] = {}
    for offset, text in sorted(_comments(source.text), key=lambda found: _piece(changed, found[0]) is not None):
        piece = _piece(changed, offset)
        if left[text]:
            left[text] -= 1
        elif piece is not None and not _deletes_statement(source, piece):
            lost.setdefault(piece, []).append(text)
    edits = [_above(source, changed, piece, texts) for piece, texts in lost.items()]
    found = [edit for edit in edits if edit is not None]
    return found if len(found) == len(edits) else None


def is_for_tools(comment: str) -> bool:
    """Whether a comment speaks to a tool: `# noqa`, `# type: ignore`."""
    return _FOR_TOOLS.match(comment) is not None


def _piece(changed: Rewrite, offset: int) -> Piece | None:
    return next((piece for piece in changed.stages[0] if piece.start <= offset < piece.end), None)


def _deletes_statement(source: Source, piece: Piece) -> bool:
    """Whether a deletion starts where a statement does."""
    if piece.new_start < piece.new_end:
        return False
    offsets = Offsets(source)
    line = bisect_right(offsets.starts, piece.start)
    before = source.text[offsets.starts[line - 1] : piece.start].strip()
    return _statement_line(source, line) == line and (not before or before.endswith((";", ":")))


def _above(source: Source, changed: Rewrite, piece: Piece, texts: list[str]) -> Edit | None:
    """Comments on lines of their own above the statement that a piece is in."""
    offsets = Offsets(source)
    line = _statement_line(source, bisect_right(offsets.starts, piece.start))
    start = offsets.starts[line - 1]
    if any(map(is_for_tools, texts)):
        return None
    if any(other.start < start < other.end for other in changed.stages[0]):
        return None
    text = "".join(f"{indentation(source, line)}{each}\n" for each in texts)
    return insert(line, 1, in_newlines_of(source, line, text))


@lru_cache(maxsize=8)
def _comments(text: str) -> tuple[tuple[int, str], ...]:
    """The comments of a valid text with their offsets."""
    source = Source("", text)
    offsets = Offsets(source)
    return tuple(
        (offsets.of(token.start[0], token.start[1] + 1), token.string)
        for token in tokenize.generate_tokens(iter(source.lines).__next__)
        if token.type == tokenize.COMMENT
    )


def _statement_line(source: Source, line: int) -> int:
    """The line on which the statement, or the head of a block, starts that goes on at a line."""
    starts = _statement_lines(source.text)
    return starts[bisect_right(starts, line) - 1] if starts and starts[0] <= line else line


@lru_cache(maxsize=8)
def _statement_lines(text: str) -> tuple[int, ...]:
    found = []
    ended = True
    for token in tokenize.generate_tokens(iter(Source("", text).lines).__next__):
        if token.type == tokenize.NEWLINE:
            ended = True
        elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT) and ended:
            found.append(token.start[0])
            ended = False
    return tuple(found)

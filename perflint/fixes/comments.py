"""Comments in what fixes replace: they go above the statement, or keep the fix from being applied."""

from __future__ import annotations

import re
import tokenize
from bisect import bisect_right
from collections import Counter
from functools import lru_cache

from perflint.findings import Edit
from perflint.fixes.edits import in_newlines_of, indentation, insert
from perflint.fixes.rewrite import Offsets, Piece, Rewrite, Stage
from perflint.source.text import Source
from perflint.source.tokens import tokens

_FOR_TOOLS = re.compile(
    r"#\s*(type:|noqa|pragma|nosec|fmt:|isort:|ruff:|mypy:|flake8:|perflint:|pylint:|pyright:|pyre-|yapf:|!)", re.I
)
"""Comments for tools, which apply only to their own line."""


def rescued(source: Source, changed: Rewrite) -> tuple[list[Edit], list[Piece]]:
    """Insertions of the comments that edits of a source drop, above the statements that held them.

    Comments that go along with a deleted statement are none of them, and neither are those that an edit is about.
    Also the pieces with comments that cannot be moved.
    """
    stage = changed.stages[0]
    left = Counter((stage.written(offset), text) for offset, text in _comments(changed.text))
    waiting: list[tuple[int, str]] = []
    for offset, text in _comments(source.text):
        index = stage.replaced(offset)
        if left[index, text]:
            left[index, text] -= 1
        elif index is not None and not _is_all_of(source, stage.pieces[index], offset, text):
            waiting.append((index, text))
    # What another edit of the fix wrote in its place counts, too.
    moved: Counter[str] = Counter()
    for (_, text), count in left.items():
        moved[text] += count
    offsets = Offsets(source)
    dropped: dict[int, list[str]] = {}
    for index, text in waiting:
        if moved[text]:
            moved[text] -= 1
        elif not _deletes_statement(source, offsets, stage.pieces[index]):
            dropped.setdefault(index, []).append(text)
    edits = {index: _above(source, offsets, stage, index, texts) for index, texts in dropped.items()}
    lost = [stage.pieces[index] for index, edit in edits.items() if edit is None]
    return [edit for edit in edits.values() if edit is not None], lost


def quotes_replaced(source: Source, edit: Edit) -> bool:
    """True if the comment behind an edit quotes the code that it replaces: `x[[-1]]  # [-1] keeps the dimension`.

    The comment would quote code that is gone, and shows that the code was chosen.
    """
    old = source.segment(edit.span).strip()
    if old.isidentifier() or len(old) < _SHORTEST or edit.span.end_column == 1:
        return False
    line = source.lines[edit.span.end_line - 1]
    start = Offsets(source).of(edit.span.end_line, 1)
    behind = range(start + edit.span.end_column - 1, start + len(line))
    return old in line and any(offset in behind and old in text for offset, text in _comments(source.text))


_SHORTEST = 3


def is_for_tools(comment: str) -> bool:
    """True if a comment speaks to a tool: `# noqa`, `# type: ignore`."""
    return _FOR_TOOLS.match(comment) is not None


def _is_all_of(source: Source, piece: Piece, offset: int, comment: str) -> bool:
    """True if an edit replaces a comment and nothing else: then the fix is about the comment."""
    before, after = source.text[piece.start : offset], source.text[offset + len(comment) : piece.end]
    return not before.strip() and not after.strip()


def _deletes_statement(source: Source, offsets: Offsets, piece: Piece) -> bool:
    """True if a deletion starts where a statement does."""
    if piece.new_start < piece.new_end:
        return False
    line = bisect_right(offsets.starts, piece.start)
    before = source.text[offsets.starts[line - 1] : piece.start].strip()
    return _statement_line(source, line) == line and (not before or before.endswith((";", ":")))


def _above(source: Source, offsets: Offsets, stage: Stage, index: int, texts: list[str]) -> Edit | None:
    """Comments on lines of their own above the statement that a piece is in."""
    line = _statement_line(source, bisect_right(offsets.starts, stage.pieces[index].start))
    start = offsets.starts[line - 1]
    if any(map(is_for_tools, texts)):
        return None
    around = stage.replaced(start)
    if around is not None and stage.pieces[around].start < start:
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
        for token in tokens(source)
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
    for token in tokens(Source("", text)):
        if token.type == tokenize.NEWLINE:
            ended = True
        elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT) and ended:
            found.append(token.start[0])
            ended = False
    return tuple(found)

"""Comments that silence findings, written into the code."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from perflint.engine.comments import COMMENT_CODES
from perflint.findings import Edit, Finding, Span
from perflint.fixes.edits import insert
from perflint.fixes.rewrite import rewrite
from perflint.source.suppressions import Comment, Reach, Suppressions
from perflint.source.text import Source


def with_ignores(source: Source, findings: Sequence[Finding], reason: str) -> tuple[str, list[Finding]]:
    """The text with comments that silence some findings, and the findings for which no comment can stand.

    Codes are added to the list of a comment that is on the line. Lines do not move.
    """
    suppressions = Suppressions(source)
    by_line: dict[int, dict[str, None]] = {}
    for finding in findings:
        if finding.code not in COMMENT_CODES:
            line = suppressions.line_for_comment(finding.span.line)
            by_line.setdefault(line, {})[finding.code] = None
    own = {each.span.line: each for each in suppressions.comments if each.reach is Reach.LINE and each.selectors}
    edits = [_edit(source, line, sorted(codes), own.get(line), reason) for line, codes in sorted(by_line.items())]
    text = rewrite(source, edits).text
    if not _is_same_code(source, text):
        return source.text, list(findings)
    now = Suppressions(Source(source.path, text))
    return text, [finding for finding in findings if not now.cover(finding)]


def _edit(source: Source, line: int, codes: Sequence[str], comment: Comment | None, reason: str) -> Edit:
    if comment is not None and comment.selectors:
        last = comment.selectors[-1].span
        return insert(last.end_line, last.end_column, "".join(f", {code}" for code in codes))
    text = source.lines[line - 1].rstrip("\r\n")
    kept = len(text.rstrip())
    words = f"  # perflint: ignore[{', '.join(codes)}]{f' {reason}' if reason else ''}"
    return Edit(Span(line, kept + 1, line, len(text) + 1), words)


def _is_same_code(source: Source, text: str) -> bool:
    """True if a text has the syntax tree of a file: a comment must not stand in a string."""
    try:
        return ast.dump(ast.parse(text)) == ast.dump(ast.parse(source.text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False

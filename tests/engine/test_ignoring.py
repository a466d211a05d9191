"""Comments that silence findings, where one can stand."""

from __future__ import annotations

import pytest

from perflint.engine.ignoring import with_ignores
from perflint.findings import Confidence, Finding, Span
from perflint.frozen import replace
from perflint.source.text import Source
from tests.output.reports import finding


def found(line: int, code: str = "TPF101") -> Finding:
    return replace(finding(Span(line, 1, line, 2), confidence=Confidence.HIGH), code=code)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "x = 1  # perflint: ignore[TPF101] why\n"),
        ("x = 1  # note\r\n", "x = 1  # note  # perflint: ignore[TPF101] why\r\n"),
        ("x = 1  # perflint: ignore[TPF2] old\n", "x = 1  # perflint: ignore[TPF2, TPF101] old\n"),
    ],
)
def test_a_comment_is_added(before: str, after: str) -> None:
    assert with_ignores(Source("a.py", before), [found(1)], "why") == (after, [])


def test_findings_about_comments_get_none() -> None:
    source = Source("a.py", "x = 1  # perflint: ignore[TPF2]\n")
    left = found(1, "TPF981")
    assert with_ignores(source, [left], "") == (source.text, [left])


def test_a_comment_that_would_be_a_part_of_a_string_is_not_written() -> None:
    """A finding that begins within a string has its comment there."""
    for text in ('x = """a\nb"""\n', "x = 1 + \\\n    2\n"):
        source = Source("a.py", text)
        fixed, left = with_ignores(source, [found(1)], "")
        assert (fixed == text) is bool(left)


def test_a_file_that_does_not_parse_is_left() -> None:
    source = Source("a.py", "x = (\n")
    assert with_ignores(source, [found(1)], "") == (source.text, [found(1)])

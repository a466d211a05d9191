"""Lines, spans and segments."""

from __future__ import annotations

import ast

import pytest

from perflint.findings import Span
from perflint.source.text import Source


def call(text: str) -> tuple[Source, ast.Call]:
    """A source and its first call."""
    source = Source("a.py", text)
    return source, next(node for node in ast.walk(source.tree) if isinstance(node, ast.Call))


SPANS = [
    ("f(x)\n", Span(1, 1, 1, 5), "f(x)"),
    ("y = f(x)", Span(1, 5, 1, 9), "f(x)"),
    ("if a:\n\ty = f(x)\n", Span(2, 6, 2, 10), "f(x)"),
    ("ü = f('é', x)\n", Span(1, 5, 1, 14), "f('é', x)"),
    ("a = '𝔘', f('𝔘')\n", Span(1, 10, 1, 16), "f('𝔘')"),
    ("y = f(\n  x,  # é\n)\n", Span(1, 5, 3, 2), "f(\n  x,  # é\n)"),
    ("y = f(\r\n  x)\r\n", Span(1, 5, 2, 5), "f(\r\n  x)"),
    ("y = 1\ry = f(x)\r", Span(2, 5, 2, 9), "f(x)"),
    ("'''a\x0cb'''\nf(x)\n", Span(2, 1, 2, 5), "f(x)"),
    ("a = '\u2028'; f(x)\n", Span(1, 10, 1, 14), "f(x)"),
]


@pytest.mark.parametrize(("text", "span", "segment"), SPANS)
def test_span_and_segment(text: str, span: Span, segment: str) -> None:
    source, node = call(text)
    assert source.span(node) == span
    assert source.segment(span) == segment


@pytest.mark.parametrize(
    ("text", "span", "segment"),
    [
        ("a\nb\n", Span(2, 1, 3, 1), "b\n"),
        ("a\nb", Span(2, 1, 3, 1), "b"),
        ("a\nb\n", Span(1, 2, 3, 1), "\nb\n"),
        ("a\nb\n", Span(3, 1, 3, 1), ""),
        ("", Span(1, 1, 1, 1), ""),
        ("a\nb\n", Span(2, 1, 2, 1), ""),
    ],
)
def test_whole_lines_up_to_the_end_of_the_file(text: str, span: Span, segment: str) -> None:
    assert Source("a.py", text).segment(span) == segment


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("f(n := 3)", "(n := 3)"),
        ("f((n := 3))", "(n := 3)"),
        ("def g():\n    f((yield))", "(yield)"),
        ("f(x for x in y)", "(x for x in y)"),
        ("f(a + b)", "a + b"),
    ],
)
def test_what_is_written_can_stand_beside_other_text(text: str, written: str) -> None:
    source, node = call(text)
    assert isinstance(node, ast.Call)
    assert source.written(node.args[0]) == written


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\r\nb\rc\n", "\n\n", "a\x0cb\x85c\n"])
def test_lines_join_to_the_text(text: str) -> None:
    assert "".join(Source("a.py", text).lines) == text


def test_a_tree_that_is_given_is_used() -> None:
    tree = ast.parse("x")
    assert Source("a.py", "x", tree).tree is tree


def test_a_span_overlaps_what_shares_a_character() -> None:
    span = Span(2, 5, 2, 9)
    assert span.overlaps(Span(1, 1, 3, 1))
    assert span.overlaps(Span(2, 8, 2, 9))
    assert not span.overlaps(Span(2, 9, 2, 12))
    assert not span.overlaps(Span(2, 1, 2, 5))


def test_a_span_contains_what_lies_within_it() -> None:
    span = Span(2, 5, 4, 9)
    assert span.contains(span)
    assert span.contains(Span(2, 5, 2, 50))
    assert span.contains(Span(3, 1, 4, 9))
    assert not span.contains(Span(2, 4, 3, 1))
    assert not span.contains(Span(3, 1, 4, 10))
    assert not span.contains(Span(1, 1, 5, 1))


def test_a_span_covers_its_characters_but_not_its_end() -> None:
    span = Span(2, 5, 4, 9)
    assert span.covers(2, 5)
    assert span.covers(3, 100)
    assert span.covers(4, 8)
    assert not span.covers(2, 4)
    assert not span.covers(4, 9)
    assert not span.covers(5, 6)


def test_parsing_warns_of_nothing() -> None:
    # Warnings are errors in this suite.
    assert Source("a.py", "x = '\\d'\nif 1 is 1: pass\n").tree.body

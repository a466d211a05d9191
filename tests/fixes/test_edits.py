"""Edits built from nodes: small, valid, and with every comment in its place."""

from __future__ import annotations

import ast

import pytest

from perflint.findings import Edit, Span
from perflint.fixes.edits import (
    delete_statement,
    replace,
    with_argument,
    with_last_comments,
    within,
)
from perflint.fixes.rewrite import rewrite
from perflint.source.concrete import cst
from perflint.source.text import Source


def result(source: Source, *edits: Edit) -> str:
    return rewrite(source, edits).text


def call_in(text: str) -> tuple[Source, ast.Call, cst.Call]:
    source = Source("example.py", text)
    call = next(node for node in ast.walk(source.tree) if isinstance(node, ast.Call))
    concrete = source.concrete(call)
    assert isinstance(concrete, cst.Call)
    return source, call, concrete


def add(text: str, argument: str = "k=False") -> str:
    source, call, concrete = call_in(text)
    new = with_argument(concrete, argument)
    assert new is not None
    fixed = result(source, replace(source, source.span(call), new))
    assert len(fixed) - len(text) >= len(argument)
    ast.parse(fixed)
    return fixed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()\n", "f(k=False)\n"),
        ("f( )\n", "f( k=False)\n"),
        ("f(  # none\n)\n", "f(  # none\n    k=False,\n)\n"),
        ("f(\n    # none\n)\n", "f(\n    # none\n    k=False,\n)\n"),
        ("if x:\n\tf(\n\t)\n", "if x:\n\tf(\n\t\tk=False,\n\t)\n"),
        ("f(a)\n", "f(a, k=False)\n"),
        ("f(a,)\n", "f(a, k=False,)\n"),
        ("f((a), (b))\n", "f((a), (b), k=False)\n"),
        ("f(*a, **b)\n", "f(*a, **b, k=False)\n"),
        ("f(\n    a,\n    b,\n)\n", "f(\n    a,\n    b,\n    k=False,\n)\n"),
        ("f(\n    a,\n    b\n)\n", "f(\n    a,\n    b,\n    k=False\n)\n"),
        ("f(\n    a,  # one\n    b,  # two\n)\n", "f(\n    a,  # one\n    b,  # two\n    k=False,\n)\n"),
        ("f(\n    a,  # one\n    b  # two\n)\n", "f(\n    a,  # one\n    b,  # two\n    k=False\n)\n"),
        ("f(\n    (a, b)\n)\n", "f(\n    (a, b),\n    k=False,\n)\n"),
        ("f(\n    a  # one\n)\n", "f(\n    a,  # one\n    k=False,\n)\n"),
        ("f(\n    a)\n", "f(\n    a,\n    k=False)\n"),
        ("f(\n    a,  # one\n)\n", "f(\n    a,  # one\n    k=False,\n)\n"),
        ("f(\n\ta,\n\t# above b\n\tb,\n\t# last\n)\n", "f(\n\ta,\n\t# above b\n\tb,\n\tk=False,\n\t# last\n)\n"),
        ("f(a,\n  b)\n", "f(a,\n  b,\n  k=False)\n"),
        ("f(a, b  # two\n  )\n", "f(a, b, k=False  # two\n  )\n"),
        ("x = (f(a,\n       b,)\n     .c)\n", "x = (f(a,\n       b,\n       k=False,)\n     .c)\n"),
        ("f(größe, 'é')\n", "f(größe, 'é', k=False)\n"),
        ("f(\r\n    a,\r\n    b,  # two\r\n)\r\n", "f(\r\n    a,\r\n    b,  # two\r\n    k=False,\r\n)\r\n"),
    ],
)
def test_with_argument_keeps_the_layout(before: str, after: str) -> None:
    assert add(before) == after


def test_with_argument_after_a_bare_generator_is_impossible() -> None:
    assert with_argument(call_in("f(x for x in y)\n")[2], "k=False") is None
    assert add("f((x for x in y))\n") == "f((x for x in y), k=False)\n"


def test_with_argument_is_one_small_insertion() -> None:
    source, call, concrete = call_in("attn(query, key, value)\n")
    new = with_argument(concrete, "need_weights=False")
    assert new is not None
    assert replace(source, source.span(call), new) == Edit(Span(1, 23, 1, 23), ", need_weights=False")


def test_replace_keeps_what_is_shared() -> None:
    source = Source("example.py", "x = (torch.zeros(3)  # why\n     .cuda())\n")
    assert replace(source, Span(1, 6, 1, 20), "torch.ones(3)") == Edit(Span(1, 12, 1, 17), "ones")


def test_replace_cuts_between_tokens_only() -> None:
    source = Source("example.py", "aab.cde\n")
    assert replace(source, Span(1, 1, 1, 8), "aac.dde") == Edit(Span(1, 1, 1, 8), "aac.dde")


@pytest.mark.parametrize("new", ["", "a", "a a", "a a a a", "b"])
def test_replace_of_repeated_tokens(new: str) -> None:
    source = Source("example.py", "a a a\n")
    assert result(source, replace(source, Span(1, 1, 1, 6), new)) == new + "\n"


def test_within_counts_over_lines() -> None:
    source = Source("example.py", "ab\r\ncd\nef")
    whole = Span(1, 2, 3, 3)
    text = source.segment(whole)
    for start in range(len(text) + 1):
        for end in range(start, len(text) + 1):
            assert source.segment(within(source, whole, start, end)) == text[start:end]


def delete(text: str, path: tuple[int, ...], index: int) -> str:
    source = Source("example.py", text)
    body = source.tree.body
    for step in path:
        body = body[step].body  # type: ignore[attr-defined]
    fixed = result(source, delete_statement(source, body[index], body))
    ast.parse(fixed)
    return fixed


@pytest.mark.parametrize(
    ("before", "path", "index", "after"),
    [
        ("a()\nb()  # gone\nc()\n", (), 1, "a()\nc()\n"),
        ("a()\nb()", (), 1, "a()\n"),
        ("a(); b(); c()\n", (), 0, "b(); c()\n"),
        ("a(); b(); c()\n", (), 1, "a(); c()\n"),
        ("a(); b(); c()  # stays\n", (), 2, "a(); b()  # stays\n"),
        ("if x:\n    a()  # stays\n", (0,), 0, "if x:\n    pass  # stays\n"),
        ("if x: a()\n", (0,), 0, "if x: pass\n"),
        ("if x: a(); b()\n", (0,), 0, "if x: b()\n"),
        ("if x:\n\ta(\n\t1)\n\tb()\n", (0,), 0, "if x:\n\tb()\n"),
        # Without its line, what follows would be part of the block.
        ("if x: a(); \\\n b()\nc()\n", (0,), 1, "if x: a(); \\\n pass\nc()\n"),
        ("if x: a(); \\\r\n b()\r\nc()\r\n", (0,), 1, "if x: a(); \\\r\n pass\r\nc()\r\n"),
        ("if x: a(); \\\n b()\nc()\n", (0,), 0, "if x: pass; \\\n b()\nc()\n"),
        ("a()\r\nb()\r\nc()\r\n", (), 1, "a()\r\nc()\r\n"),
        ("a()\n# about b\nb()\n", (), 1, "a()\n# about b\n"),
    ],
)
def test_delete_statement(before: str, path: tuple[int, ...], index: int, after: str) -> None:
    assert delete(before, path, index) == after


@pytest.mark.parametrize(
    ("below", "last"),
    [
        ("        # last\n    y = 1\n", 3),
        ("\n        # one\n\n        # two\n    # not this\n", 6),
        ("    # not this\n        # nor this\n", 2),
        ("", 2),
    ],
)
def test_a_block_ends_with_its_comments(below: str, last: int) -> None:
    source = Source("example.py", "    for x in y:\n        z()\n" + below)
    assert with_last_comments(source, Span(1, 5, 2, 12)).end_line == last

"""Expressions by libcst."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from perflint.source.concrete import code, cst, parse_expression
from perflint.source.text import Source

EXPRESSIONS = [
    "x",
    "f(x)  [ 1 : 2 ]",
    "lambda a, *b: a",
    "(x)",
    "(\n    x\n)",
    "f(\n    x,  # why\n    y\n)",
    "a\n.b()\n.c",
    "a and\\\n b",
    "x := f(y)",
    "yield x",
    "yield from x",
    "await x",
    "*a, b",
    "[i for i in x]",
    "f'{x!r:>{w}}'",
    "'a'\n'b'",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_code_gives_the_text_back(text: str) -> None:
    assert code(parse_expression(text)) == text


def test_newlines_come_out_as_line_feeds() -> None:
    assert code(parse_expression("a\r\n.b()")) == "a\n.b()"


@pytest.mark.parametrize("text", ["x =", "x y", "for", "x)"])
def test_no_expression(text: str) -> None:
    with pytest.raises(cst.ParserSyntaxError):
        parse_expression(text)


def test_every_expression_of_a_file_has_a_node() -> None:
    text = (
        "async def f(x, *a, k=(1,\n  2)):\n"
        "\tif (n := x.item()) > 3:\n"
        "\t\ty = (yield n)\n"
        "\tz = x[1:2, ..., None] if x else 'ü' 'é'\n"
        "\treturn {**z, 'a': [await q for q in a if q]}, f'{x:.3f}', lambda: (yield)\n"
    )
    source = Source("a.py", text)
    outer = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, (ast.Call, ast.IfExp, ast.NamedExpr, ast.Yield, ast.Dict))
    ]
    assert len(outer) > 3
    for node in outer:
        assert code(source.concrete(node)) == source.segment(source.span(node))


def test_a_node_is_parsed_once() -> None:
    source = Source("a.py", "f(x)\n")
    statement = source.tree.body[0]
    assert isinstance(statement, ast.Expr)
    assert source.concrete(statement.value) is source.concrete(statement.value)


def test_importing_the_module_does_not_import_libcst() -> None:
    script = (
        "import sys; import perflint.source.concrete as c; assert 'libcst' not in sys.modules; "
        "c.cst.Name; assert 'libcst' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

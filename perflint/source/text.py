"""One file: its text, its trees and the spans that tie them together."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from functools import cached_property
from typing import TYPE_CHECKING

from perflint.findings import Span
from perflint.source import type_comments

if TYPE_CHECKING:
    from perflint.source.concrete import cst
    from perflint.source.notebooks import Notebook

_STANDS_IN_BRACKETS = (ast.NamedExpr, ast.Yield, ast.YieldFrom)
"""Expressions that the grammar allows almost nowhere without brackets; their own spans leave the brackets out."""
_LONG_NUMBER = re.compile(r"0[xXoObB][\da-fA-F_]{3500}")
"""A number that may have too many decimal digits to be printed."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def parse(text: str) -> ast.Module:
    """The syntax tree of a text, without Python's warnings about it. Raises as `ast.parse` does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = type_comments.parse(text)
    if _LONG_NUMBER.search(text):
        _require_printable(tree)
    return tree


def _require_printable(tree: ast.Module) -> None:
    """Raise SyntaxError for a number that Python reads, such as a long hexadecimal one, but does not print."""
    digits = sys.get_int_max_str_digits()
    for node in ast.walk(tree) if digits else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >= 10**digits:
            message = f"the number has more than {digits} digits, so that nothing can print it"
            raise SyntaxError(message, ("", node.lineno, node.col_offset + 1, None))


class Source:
    """A Python file as perflint sees it.

    `path` is how the user named the file; `text` is decoded and keeps its newlines.
    """

    def __init__(self, path: str, text: str, tree: ast.Module | None = None, notebook: Notebook | None = None) -> None:
        self.path = path
        self.text = text
        self.notebook = notebook
        """The notebook whose code it is."""
        if tree is None and notebook is not None and notebook.text == text:
            tree = notebook.tree
        if tree is not None:
            self.tree = tree
        self._concrete: dict[ast.AST, cst.BaseExpression] = {}

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree. Raises SyntaxError, and ValueError for null bytes."""
        return parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        """The lines with their ends, split where Python splits them."""
        return _LINE.findall(self.text)

    def column(self, line: int, byte_offset: int) -> int:
        """The column, from 1 and in characters, of a UTF-8 offset in a line."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        if text.isascii():
            return byte_offset + 1
        return len(text.encode("utf-8")[:byte_offset].decode("utf-8", "replace")) + 1

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.excepthandler | ast.alias) -> Span:
        """The span of a node; a compound statement's includes its body."""
        end_line, end_offset = node.end_lineno, node.end_col_offset
        assert end_line is not None and end_offset is not None
        return Span(
            node.lineno,
            self.column(node.lineno, node.col_offset),
            end_line,
            self.column(end_line, end_offset),
        )

    def segment(self, span: Span) -> str:
        """The text of a span. A span of whole lines may end at the start of the line behind the last one."""
        lines = self.lines[span.line - 1 : span.end_line]
        if len(lines) == span.end_line - span.line + 1:
            lines[-1] = lines[-1][: span.end_column - 1]
        if lines:
            lines[0] = lines[0][span.column - 1 :]
        return "".join(lines)

    def written(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> str:
        """The text of a node, with brackets around an expression that needs them beside other text."""
        text = self.segment(self.span(node))
        return f"({text})" if isinstance(node, _STANDS_IN_BRACKETS) else text

    def concrete(self, node: ast.expr) -> cst.BaseExpression:
        """The libcst node of an expression, parsed when first asked for and kept."""
        found = self._concrete.get(node)
        if found is None:
            from perflint.source.concrete import parse_expression

            found = self._concrete[node] = parse_expression(self.segment(self.span(node)))
        return found

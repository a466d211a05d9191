"""Signatures in comments: `# type: (Tensor, int) -> Tensor` below a `def`, `# type: Tensor` beside a parameter.

Code for torch.jit.script is full of them. They become annotations of the syntax tree, at the
place of the comment.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_PATTERN = r"#[ \t]*type:[ \t]*+(?!ignore\b)"
_ANY = re.compile(_PATTERN)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of statements with statements in them."""
_IN_BYTES = re.compile(_PATTERN.encode())


def parse(text: str) -> ast.Module:
    """The syntax tree of a text, with annotations for signatures in comments. Raises as `ast.parse` does."""
    if not _ANY.search(text):
        return ast.parse(text)
    try:
        tree = ast.parse(text, type_comments=True)
    except SyntaxError:
        # Python is strict about what it takes for such a comment; the code itself may be fine.
        return ast.parse(text)
    lines = text.encode().splitlines()
    for node in _functions(tree):
        _annotate(node, lines)
    return tree


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions of a file. They are statements, so expressions are not looked at."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        for block in _BLOCKS:
            waiting += getattr(node, block, ())


def _annotate(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[bytes]) -> None:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    for argument in arguments:
        if argument.type_comment is not None and argument.annotation is None:
            argument.annotation = _at_comment(argument.type_comment, argument.lineno, lines)
    if node.type_comment is None:
        return
    signature = _signature(node.type_comment)
    line = next((n for n in range(node.lineno, node.body[0].lineno + 1) if _comment_start(lines[n - 1]) >= 0), None)
    if signature is None or line is None:
        return
    types = signature.argtypes
    if len(types) == len(arguments) - 1:
        arguments = arguments[1:]
    if len(types) == len(arguments):
        for argument, kind in zip(arguments, types, strict=True):
            if argument.annotation is None:
                argument.annotation = _moved(kind, line, lines)
    if node.returns is None:
        node.returns = _moved(signature.returns, line, lines)


def _signature(comment: str) -> ast.FunctionType | None:
    try:
        return ast.parse(comment, mode="func_type")
    except SyntaxError:
        return None


def _at_comment(comment: str, line: int, lines: list[bytes]) -> ast.expr | None:
    try:
        return _moved(ast.parse(comment, mode="eval").body, line, lines)
    except SyntaxError:
        return None


def _moved(node: ast.expr, line: int, lines: list[bytes]) -> ast.expr:
    """An expression that was parsed by itself, put where its comment is."""
    start = max(_comment_start(lines[line - 1]), 0)
    for inner in ast.walk(node):
        if isinstance(inner, ast.expr):
            inner.lineno = inner.end_lineno = line
            inner.col_offset += start
            inner.end_col_offset = (inner.end_col_offset or 0) + start
    return node


def _comment_start(line: bytes) -> int:
    """The offset at which the type in a line's comment begins, in bytes; -1 without a type."""
    found = _IN_BYTES.search(line)
    return -1 if found is None else found.end()

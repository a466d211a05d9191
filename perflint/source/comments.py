"""Which part of a text is code: the rest may change without a new meaning."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_TYPE = re.compile(rb"#[ \t]*type:")
"""A comment that the parser reads."""
_REST_OF_LINE = 1 << 30


def digest_of_code(text: str, strings: Iterable[ast.expr]) -> str:
    """A digest of a text without its comments and the spaces before them; `strings` are its literals.

    Texts of equal digests have equal trees, whose nodes have equal places.
    """
    data = text.encode("utf-8", "surrogatepass")
    if b"#" in data:
        data = b"".join(_without_comments(data, strings))
    return hashlib.blake2b(data.rstrip(), digest_size=16).hexdigest()


def _without_comments(data: bytes, strings: Iterable[ast.expr]) -> Iterable[bytes]:
    lines = _LINE.findall(data)
    within: dict[int, list[tuple[int, int]]] = {number: [] for number, line in enumerate(lines, 1) if b"#" in line}
    for node in strings:
        end = node.end_lineno or node.lineno
        for number in range(node.lineno, end + 1):
            if number in within:
                first = node.col_offset if number == node.lineno else 0
                last = node.end_col_offset if number == end else None
                within[number].append((first, _REST_OF_LINE if last is None else last))
    for number, line in enumerate(lines, 1):
        yield _without_comment(line, within[number]) if number in within else line


def _without_comment(line: bytes, strings: list[tuple[int, int]]) -> bytes:
    at = line.find(b"#")
    while at >= 0:
        if not any(first <= at < last for first, last in strings):
            return line if _TYPE.match(line, at) else line[:at].rstrip() + b"\n"
        at = line.find(b"#", at + 1)
    return line

"""Code in a sentence: on one line, without comments, and short."""

from __future__ import annotations

import ast
import re

LONGEST = 60
"""Characters of code in a sentence."""
_LONGEST_PARSED = 2000
_SPACES = re.compile(r"\s+")
_BESIDE_BRACKETS = re.compile(r"(?<=[(\[{]) | (?=[)\]}])|,(?= ?[)\]}])")


def quoted(text: str) -> str:
    """The code of an expression between backquotes; where it is too long, "…" stands for arguments."""
    if len(text) <= LONGEST and "\n" not in text:
        return f"`{text}`"
    line = one_line(text)
    if len(line) > LONGEST:
        line = _shortened(line)
    return f"`{line}`"


def one_line(text: str) -> str:
    """Code that may go over several lines on one, without comments."""
    if "\n" not in text:
        return text
    line = _SPACES.sub(" ", _without_comments(text)).strip()
    # A comma before a closing bracket means something in `(x,)` alone, which fits one line as it is.
    return _BESIDE_BRACKETS.sub("", line)


def _without_comments(text: str) -> str:
    if "#" not in text:
        return text
    import io
    import tokenize

    lines = text.splitlines(keepends=True)
    try:
        # In brackets, so that the lines belong together.
        for token in tokenize.generate_tokens(io.StringIO(f"({text}\n)").readline):
            if token.type == tokenize.COMMENT:
                (row, column), end = token.start, token.end[1]
                shift = 1 if row == 1 else 0
                lines[row - 1] = lines[row - 1][: column - shift] + lines[row - 1][end - shift :]
    except (tokenize.TokenError, IndentationError, IndexError):
        return text
    return "".join(lines)


def _shortened(line: str) -> str:
    """A long line with "…" for arguments, as few as it takes; then for the beginning of a chain, or the end."""
    code = line.encode() if len(line) < _LONGEST_PARSED else b""
    while len(code.decode()) > LONGEST:
        parts = _arguments(code)
        if not parts:
            break
        over = len(code.decode()) - LONGEST
        enough = [part for part in parts if len(code[part[0] : part[1]].decode()) - 1 >= over]
        start, end = min(enough, key=_length) if enough else max(parts, key=_length)
        code = code[:start] + "…".encode() + code[end:]
    line = code.decode() or line
    if len(line) <= LONGEST:
        return line
    links = [match.start() for match in re.finditer(r"\.(?=[^\W\d])", line)] if _is_chain(code) else []
    last = next((at for at in links if len(line) - at < LONGEST and _is_balanced(line[at:])), None)
    return f"…{line[last:]}" if last is not None else f"{line[: LONGEST - 1].rstrip()}…"


def _length(part: tuple[int, int]) -> int:
    return part[1] - part[0]


def _parsed(code: bytes) -> ast.Expression | None:
    try:
        # Both are three bytes long.
        return ast.parse(code.replace("…".encode(), b"..."), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_chain(code: bytes) -> bool:
    """True if code is one call, attribute or element of something."""
    tree = _parsed(code)
    return tree is not None and isinstance(tree.body, (ast.Call, ast.Attribute, ast.Subscript))


def _arguments(code: bytes) -> list[tuple[int, int]]:
    """The stretches between brackets of calls, lists and dicts that are longer than "…"."""
    tree = _parsed(code)
    if tree is None:
        return []
    found = []
    for node in ast.walk(tree):
        start = None
        if isinstance(node, ast.Call) and (node.args or node.keywords):
            start = code.find(b"(", node.func.end_col_offset or 0) + 1
        elif isinstance(node, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp)):
            start = node.col_offset + 1
        if start is not None and isinstance(node, ast.expr):
            end = (node.end_col_offset or 0) - 1
            if end - start > len("…".encode()):
                found.append((start, end))
    return found


def _is_balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return False
    return depth == 0

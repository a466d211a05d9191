"""Code in a sentence: on one line, without comments, and short."""

from __future__ import annotations

import re
from keyword import iskeyword
from typing import NamedTuple, TypeAlias

LONGEST = 60
"""Characters of code in a sentence."""
_LONGEST_READ = 1000
_SPACES = re.compile(r"\s+")
_TOKENS = re.compile(
    r"""\w{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')|\d[\w.]*|\w+|\S""", re.DOTALL
)
_OPENING = re.compile(r"[(\[{]")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_BESIDE_BRACKETS = re.compile(r"(?<=[(\[{]) | (?=[)\]}])|,(?= ?[)\]}])")

Stretch: TypeAlias = tuple[int, int]


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

    lines = io.StringIO(text).readlines()
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
    if len(line) <= _LONGEST_READ:
        for start, end in reversed(_left_out(line)):
            line = f"{line[:start]}…{line[end:]}"
        if len(line) <= LONGEST:
            return line
        links = _brackets(line).links if "." in line[1 - LONGEST :] else []
        last = next((at for at in links if len(line) - at < LONGEST), None)
        if last is not None:
            return f"…{line[last:]}"
    return f"{line[: LONGEST - 1].rstrip()}…"


def _left_out(line: str) -> list[Stretch]:
    """The arguments without which a line is short enough, or all if it never is; in order."""
    if not _OPENING.search(line):
        return []
    parts = _brackets(line).arguments[::-1]
    found = _outermost(parts)
    if len(line) - sum(map(_saved, found)) > LONGEST:
        return found
    found, over = [], len(line) - LONGEST
    while over > 0:
        enough = [part for part in parts if _saved(part) >= over]
        cut = min(enough, key=_saved) if enough else max(parts, key=_saved)
        found.append(cut)
        over -= _saved(cut)
        parts = [part for part in parts if part[1] <= cut[0] or cut[1] <= part[0]]
    return sorted(found)


def _saved(part: Stretch) -> int:
    return part[1] - part[0] - len("…")


def _outermost(parts: list[Stretch]) -> list[Stretch]:
    """Those that lie in no other, in order."""
    found: list[Stretch] = []
    for part in sorted(parts):
        if not found or part[0] >= found[-1][1]:
            found.append(part)
    return found


class _Brackets(NamedTuple):
    """The brackets of a line: none if they do not fit together."""

    arguments: list[Stretch]
    """The stretches between brackets of calls, lists and dicts that are longer than "...", which is as good as "…"."""
    links: list[int]
    """Where the attributes of a chain begin: of one call, attribute or element of something."""


def _brackets(line: str) -> _Brackets:
    arguments: list[Stretch] = []
    links: list[int] = []
    opened: list[tuple[str, int, bool]] = []
    before, is_chain = "", True
    for token in _TOKENS.finditer(line):
        text, follows = token[0], _is_operand(before)
        if text in _CLOSING:
            is_arguments = {"(": follows, "[": not follows, "{": True}[text]
            opened.append((_CLOSING[text], token.end(), is_arguments))
        elif text in _CLOSING.values():
            closing, start, is_arguments = opened.pop() if opened else ("", 0, False)
            if text != closing:
                return _Brackets([], [])
            if is_arguments and token.start() - start > len("..."):
                arguments.append((start, token.start()))
        elif not opened:
            if text == ".":
                links.append(token.start())
            is_chain &= follows if text == "." else before in ("", ".") and _is_operand(text)
        before = text
    return _Brackets([], []) if opened else _Brackets(arguments, links if is_chain else [])


def _is_operand(token: str) -> bool:
    """True if a bracket after a token belongs to it."""
    return token[-1:] in (*")]}\"'_",) or (token[-1:].isalnum() and not iskeyword(token))

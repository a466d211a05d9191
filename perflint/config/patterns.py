"""Path patterns in the syntax of .gitignore, for ignore files, excludes and per-file settings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_CLASS = re.compile(r"\[[!^]?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]")
_POSIX = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of an ignore file."""

    regex: re.Pattern[str]
    negated: bool
    folders_only: bool


class Patterns:
    """The lines of one ignore file. Paths are relative to its folder, with "/" between names."""

    __slots__ = ("_patterns",)

    def __init__(self, lines: Iterable[str]) -> None:
        # The last line that matches decides.
        self._patterns = [pattern for line in lines if (pattern := _parse(line)) is not None][::-1]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def verdict(self, path: str, folder: bool = False) -> bool | None:
        """Whether the path matches (True), is taken back by a "!" line (False) or is not named (None)."""
        for pattern in self._patterns:
            if (folder or not pattern.folders_only) and pattern.regex.fullmatch(path):
                return not pattern.negated
        return None

    def covers(self, path: str) -> bool:
        """Whether a file or a folder above it matches."""
        at = path.find("/")
        while at >= 0:
            if self.verdict(path[:at], folder=True):
                return True
            at = path.find("/", at + 1)
        return bool(self.verdict(path))


def _parse(line: str) -> Pattern | None:
    text = _without_trailing_spaces(line.rstrip("\r\n"))
    if text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text
    folders_only = text.endswith("/")
    text = text[:-1] if folders_only else text
    if not text:
        return None
    try:
        regex = re.compile(_translate(text), re.DOTALL)
    except re.error:
        return None
    return Pattern(regex, negated, folders_only)


def _without_trailing_spaces(text: str) -> str:
    while text.endswith(" "):
        backslashes = len(text[:-1]) - len(text[:-1].rstrip("\\"))
        if backslashes % 2:
            return text
        text = text[:-1]
    return text


def _translate(text: str) -> str:
    """A regular expression for a pattern without its "!" and its trailing slash."""
    anchored = "/" in text
    names = text.removeprefix("/").split("/")
    parts = [] if anchored else ["(?:.*/)?"]
    last = len(names) - 1
    for index, name in enumerate(names):
        if name == "**" and anchored:
            parts.append(".+" if index == last else "(?:.*/)?")
        else:
            parts.append(_name(name) + ("" if index == last else "/"))
    return "".join(parts)


def _name(text: str) -> str:
    parts = []
    at = 0
    while at < len(text):
        character = text[at]
        bracket = _CLASS.match(text, at) if character == "[" else None
        if bracket is not None:
            parts.append(_bracket(bracket.group()))
            at = bracket.end()
            continue
        if character == "\\" and at + 1 < len(text):
            at += 1
            parts.append(re.escape(text[at]))
        else:
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(character) or re.escape(character))
        at += 1
    return "".join(parts)


def _bracket(text: str) -> str:
    body = text[1:-1]
    negated = body[0] in "!^"
    body = body[1:] if negated else body
    body = re.sub(r"\[:(\w+):\]", lambda match: _POSIX.get(match.group(1), ""), body)
    body = body.replace("[", r"\[").replace("&", r"\&").replace("|", r"\|").replace("~", r"\~")
    body = r"\]" + body[1:] if body.startswith("]") else body
    return f"(?!/)[{'^' if negated else ''}{body}]"

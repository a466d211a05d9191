"""Path patterns in the syntax of .gitignore, for ignore files, excludes and per-file settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from perflint.frozen import dataclass

_POSIX = r"\[:(\w+):\]"
_DOTS = r"(?:^|/)\.\.?(?:/|$)"
_BACKSLASH = r"(?<!\\)(?:\\\\)*\\\w"
"""A separator of Windows: no letter needs an escape."""
_NEEDS_TRANSLATION = frozenset("*?[\\/")
_POSIX_CLASSES = {
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
    """One line of an ignore file: a plain name, for which most lines stand, or a regular expression."""

    name: str
    regex: re.Pattern[str] | None
    negated: bool
    folders_only: bool

    def matches(self, path: str) -> bool:
        """True if a path is what the line names."""
        if self.regex is not None:
            return self.regex.fullmatch(path) is not None
        return path.rpartition("/")[2] == self.name


class Patterns:
    """The lines of one ignore file. Paths are relative to its folder, with "/" between names."""

    __slots__ = ("_by_name", "_others")

    def __init__(self, lines: Iterable[str]) -> None:
        self._by_name: dict[str, list[tuple[int, Pattern]]] = {}
        """The plain names, with the numbers of their lines, the last first."""
        self._others: list[tuple[int, Pattern]] = []
        """The same for regular expressions."""
        patterns = [pattern for line in lines if (pattern := _parse(line)) is not None]
        for place in reversed(list(enumerate(patterns))):
            pattern = place[1]
            (self._by_name.setdefault(pattern.name, []) if pattern.regex is None else self._others).append(place)

    def __bool__(self) -> bool:
        return bool(self._by_name or self._others)

    def verdict(self, path: str, folder: bool = False) -> bool | None:
        """True if the path matches, False if a "!" line takes it back, None if no line names it."""
        named = self._by_name.get(path.rpartition("/")[2], ())
        line, found = next(((line, each) for line, each in named if folder or not each.folders_only), (-1, None))
        # The last line that matches decides.
        for later, pattern in self._others:
            if later < line:
                break
            if (folder or not pattern.folders_only) and pattern.matches(path):
                found = pattern
                break
        return None if found is None else not found.negated

    def covers(self, path: str) -> bool:
        """True if a file or a folder above it matches."""
        at = path.find("/")
        while at >= 0:
            if self.verdict(path[:at], folder=True):
                return True
            at = path.find("/", at + 1)
        return bool(self.verdict(path))


def literal(path: str) -> str:
    """The pattern that matches a path and nothing else with its name."""
    text = re.sub(r"[\\*?\[]", r"\\\g<0>", path)
    return f"\\{text}" if text.startswith(("!", "#")) else text


def pattern_fault(line: str) -> str | None:
    """The reason why a line can match no path that is meant, or None. Ignore files may have such lines, as in git."""
    text = _without_trailing_spaces(line).removeprefix("!")
    try:
        _translate(text.removesuffix("/"))
    except re.error as error:
        return error.msg
    if re.search(_DOTS, text):
        return "paths are relative to the folder of the settings, without `.` and `..`"
    return "folders are separated by `/`" if re.search(_BACKSLASH, text) else None


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
    if _NEEDS_TRANSLATION.isdisjoint(text):
        return Pattern(text, None, negated, folders_only)
    try:
        regex = re.compile(_translate(text), re.DOTALL)
    except re.error:
        return None
    return Pattern(text, regex, negated, folders_only)


def _without_trailing_spaces(text: str) -> str:
    kept = text.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return f"{kept} " if kept != text and backslashes % 2 else kept


_STAR, _FOLDERS, _REST = "*", "**/", "/**"
"""The parts of a pattern that match any length: within a name, whole folders, and all that follows."""


def _translate(text: str) -> str:
    """A regular expression for a pattern without its "!" and its trailing slash. Raises re.error.

    Each stretch between two stars is in an atomic group: where it first matches is where it stays. No later
    place can let more of the rest match, as a stretch has a fixed length (in characters between `*`, in names
    between `**/`). So nothing is tried twice, and matching takes at most the product of both lengths.
    """
    parts = [*_parts(text), r"\Z"]
    names = _split(parts, _FOLDERS)
    above = "" if "/" in text else "(?:.*/)?+"
    return above + _name_by_name(names[0]) + "".join(f"(?>(?:[^/]*+/)*?{_name_by_name(each)})" for each in names[1:])


def _name_by_name(parts: list[str]) -> str:
    """The expression for the parts between two `**/`."""
    if _REST in parts:
        return _name_by_name(parts[: parts.index(_REST)]) + ".*+"
    stretches = _split(parts, _STAR)
    return "".join(stretches[0]) + "".join(f"(?>[^/]*?{''.join(each)})" for each in stretches[1:])


def _split(parts: list[str], at: str) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for part in parts:
        if part == at:
            found.append([])
        else:
            found[-1].append(part)
    return found


def _parts(text: str) -> Iterator[str]:
    """Expressions for single characters, and what matches any length. Raises re.error."""
    anchored = "/" in text
    text = text.removeprefix("/")
    at = 0
    while at < len(text):
        if text[at] == "*":
            part, at = _stars(text, at, anchored)
        elif text[at] == "[":
            part, at = _bracket(text, at)
        elif text[at] == "?":
            part, at = "[^/]", at + 1
        else:
            character, at = _literal(text, at)
            part = re.escape(character)
        yield part


def _stars(text: str, at: int, anchored: bool) -> tuple[str, int]:
    end = at
    while text.startswith("*", end):
        end += 1
    whole_name = (at == 0 or text[at - 1] == "/") and (end == len(text) or text[end] == "/")
    if end - at < 2 or not anchored or not whole_name:
        return _STAR, end
    return (_REST, end) if end == len(text) else (_FOLDERS, end + 1)


def _literal(text: str, at: int) -> tuple[str, int]:
    is_escaped = text.startswith("\\", at)
    at += is_escaped
    if at >= len(text):
        raise re.error("a `\\` at its end escapes nothing" if is_escaped else "a `[` without `]`", text)
    return text[at], at + 1


def _bracket(text: str, at: int) -> tuple[str, int]:
    negated = text[at + 1 : at + 2] in ("!", "^")
    at += 2 if negated else 1
    members: list[str] = []
    first = True
    while first or not text.startswith("]", at):
        first = False
        posix = re.compile(_POSIX).match(text, at)
        if posix is not None:
            members.append(_POSIX_CLASSES.get(posix[1], ""))
            at = posix.end()
            continue
        low, at = _literal(text, at)
        members.append(re.escape(low))
        if text.startswith("-", at) and text[at + 1 : at + 2] not in ("", "]"):
            high, at = _literal(text, at + 1)
            if low < high:
                members.append(f"{re.escape(low)}-{re.escape(high)}")
    body = "".join(members)
    if not body:
        return ("[^/]" if negated else "(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{body}]", at + 1

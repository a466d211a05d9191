"""The changes that fixes make, as a diff."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator
from typing import TextIO

from perflint.output.terminal import Style, printable
from perflint.source.reading import Text

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_ESCAPES = {"\a": r"\a", "\b": r"\b", "\t": r"\t", "\n": r"\n", "\v": r"\v", "\f": r"\f", "\r": r"\r"} | {
    '"': r"\"",
    "\\": r"\\",
}


def diff_lines(path: str, before: Text, after: str) -> Iterator[str]:
    """A unified diff that `patch -p1` and `git apply` take."""
    name = path.replace(os.sep, "/").removeprefix("./").lstrip("/")
    mark = "\ufeff" if before.bom else ""
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", mark + text) for text in (before.text, after))
    for line in difflib.unified_diff(old, new, _quoted(f"a/{name}"), _quoted(f"b/{name}")):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def patch_of(path: str, before: Text, after: str) -> bytes:
    """The diff as the bytes of a file, in the encoding of its file."""
    lines = list(diff_lines(path, before, after))
    return os.fsencode("".join(lines[:2])) + "".join(lines[2:]).encode(before.encoding)


def _quoted(name: str) -> str:
    """A name as git writes it: in quotes if it holds what a reader could take for more than a name."""
    if name.isprintable() and not _ESCAPES.keys() & set(name):
        # After a tab there may be a date, after a space a reader would expect one.
        return f"{name}\t" if " " in name else name
    return f'"{"".join(map(_escaped, name))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES or character.isprintable():
        return _ESCAPES.get(character, character)
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(character))


def shown(lines: Iterable[str], style: Style, stream: TextIO) -> Iterator[str]:
    """The lines of a diff as they go to a stream: in the usual colours, and to a terminal without control characters.

    Without colours and a terminal they stay as they are, so that the diff can be applied.
    """
    if not style.colours and not stream.isatty():
        yield from lines
        return
    for line in lines:
        body = line.rstrip("\r\n")
        name = "bold" if line.startswith(("+++ ", "--- ")) else _COLOURS.get(line[0])
        text = "\t".join(map(printable, body.split("\t")))
        yield (style(text, name) if name else text) + line[len(body) :]

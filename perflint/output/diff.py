"""What fixes change, as a diff."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

from perflint.output.terminal import Style

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def diff_lines(path: str, before: str, after: str) -> Iterator[str]:
    """A unified diff that `patch -p1` and `git apply` take."""
    name = path.replace("\\", "/").removeprefix("./").lstrip("/")
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def coloured(lines: Iterable[str], style: Style) -> Iterator[str]:
    """The lines of a diff in the usual colours."""
    for line in lines:
        body = line.rstrip("\r\n")
        name = "bold" if line.startswith(("+++ ", "--- ")) else _COLOURS.get(line[0])
        yield style(body, name) + line[len(body) :] if name else line

"""The line length that a project states for its formatter."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from perflint.config.regular import read_regular

_LARGEST = 1 << 20
_FILES = (("pyproject.toml", ("tool.black", "tool.ruff")), ("ruff.toml", ("",)), (".ruff.toml", ("",)))
"""The files of black and ruff, and the tables in them that state the length."""
_TABLE = re.compile(r"\s*+\[([^\[\]\n]*+)\]")
_LENGTH = re.compile(r"\s*+line[-_]length\s*+=\s*+(\d{2,3})\s*+(?:#.*)?")


def line_length(folders: Iterable[str]) -> int | None:
    """The line length of black or ruff that the first folder states; None if no folder states one.

    A file that is missing, cannot be read or is too large states nothing.
    """
    return next((length for folder in folders for length in _stated(folder)), None)


def _stated(folder: str) -> Iterator[int]:
    for name, tables in _FILES:
        try:
            data = read_regular(os.path.join(folder, name), _LARGEST)
        except OSError:
            continue
        table = ""
        for line in (data or b"").decode("utf-8", "replace").splitlines():
            if header := _TABLE.match(line):
                table = header[1].strip()
            elif table in tables and (length := _LENGTH.fullmatch(line)):
                yield int(length[1])

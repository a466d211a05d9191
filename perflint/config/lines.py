"""The line of a setting in its file, for messages about it."""

from __future__ import annotations

import os
import re

_LARGEST = 1 << 20


def placed(file: str, key: str) -> str:
    """A file with the line of a key in it: "pyproject.toml:7"; the name alone if it is not a file with that key."""
    line = _line(file, key)
    return file if line is None else f"{file}:{line}"


def _line(file: str, key: str) -> int | None:
    if not os.path.isabs(file) or not os.path.isfile(file) or os.path.getsize(file) > _LARGEST:
        return None
    with open(file, encoding="utf-8", errors="replace") as opened:
        lines = opened.read().splitlines()
    header = re.compile(r"\s*\[\s*tool\s*\.\s*perflint\b")
    first = next((at for at, line in enumerate(lines) if header.match(line)), 0)
    name = re.compile(rf"""\s*(?:\[\s*(?:tool\s*\.\s*perflint\s*\.\s*)?)?["']?{re.escape(key)}["']?\s*[\].=]""")
    return next((at + 1 for at in range(first, len(lines)) if name.match(lines[at])), None)

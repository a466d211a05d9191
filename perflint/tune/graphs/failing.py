"""Finds the statement with which the making of a graph failed, by what the program printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from perflint.tune.graphs.writing import HELPERS

_FRAME = re.compile(r'^ *File "(.+)", line (\d+), in (\S+)$')


def failing(told: str, known: Mapping[str, str], tried: Mapping[str, str]) -> tuple[str, str] | None:
    """The file and the source of the innermost line of the project at which a graph of the `tried` files failed.

    None if it was not made then, or if no line of the `known` files, those without the graph, has this source.
    """
    for frames in _tracebacks(told):
        names = [name for _, _, name in frames]
        starts = [at for at, name in enumerate(names) if any(name.startswith(each.function) for each in HELPERS)]
        if not starts:
            continue
        for file, line, _ in reversed(frames[starts[-1] :]):
            path = next((each for each in tried if f"/{file}".replace("\\", "/").endswith(f"/{each}")), "")
            rows = tried.get(path, "").splitlines()
            source = rows[line - 1].strip() if line <= len(rows) else ""
            if source and source in map(str.strip, known.get(path, "").splitlines()):
                return path, source
    return None


def _tracebacks(told: str) -> Iterator[list[tuple[str, int, str]]]:
    """The frames of each traceback: file, line and function."""
    frames: list[tuple[str, int, str]] = []
    for row in told.splitlines():
        if found := _FRAME.match(row):
            frames.append((found[1], int(found[2]), found[3]))
        elif not row.startswith(" ") and frames:
            yield frames
            frames = []
    if frames:
        yield frames

"""The folders of a project that its code puts on the path of modules: `sys.path.append("../include")`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath

ADDS_FOLDERS = re.compile(r"sys\.path\.(?<=\bsys\.path\.)(?:append|insert|extend)\(")
"""Text that may put folders on the path. It begins with letters, so that searching all texts of a project is fast."""
_CALL = re.compile(rf"{ADDS_FOLDERS.pattern}([^\n]*)")
_JOINS = re.compile(r"^.*(?:\bjoin\(|\bPath\(|__file__).*$", re.MULTILINE)
_TEXT = re.compile(r"[\"']([^\"'\n]+)[\"']")


def added_folders(texts: Iterable[tuple[Path, str]], folders: Collection[Path]) -> tuple[Path, ...]:
    """The folders, of some, that the texts of files put on the path; those named with more parts come first.

    A program names a folder by where it was written, `/home/ann/project/include`, or by the folder that it runs in, so
    the longest end of a name that is below the file's folder or one of the folders above it counts.
    """
    found = {
        folder: None
        for path, text in texts
        for parts in _named(text)
        if (folder := _folder_of(parts, path.parent, folders)) is not None
    }
    return tuple(sorted(found, key=lambda folder: (-len(folder.parts), folder)))


def _named(text: str) -> Iterator[tuple[str, ...]]:
    """The parts of the names of folders: of each text in a call, and of all of them, which the call may join.

    A call without a text gets the folder from a line of the file that joins a path: `add_path(join(here, "lib"))`.
    """
    for call in _CALL.findall(text):
        said = [_parts(each) for each in _TEXT.findall(call)]
        yield tuple(part for parts in said for part in parts)
        yield from said or (_parts(each) for line in _JOINS.findall(text) for each in _TEXT.findall(line))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part for part in PurePosixPath(text.replace("\\", "/")).parts if part not in ("/", ".", ".."))


def _folder_of(parts: tuple[str, ...], start: Path, folders: Collection[Path]) -> Path | None:
    around = [start, *start.parents]
    for first in range(len(parts)):
        for folder in around:
            if (named := folder.joinpath(*parts[first:])) in folders:
                return named
    return None

"""The files that a check reads: those of this machine, or those that came with the work from another machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from perflint.config.regular import read_regular
from perflint.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Carried:
    """Files of another machine."""

    here: str
    """Its working directory."""
    contents: Mapping[str, bytes | None]
    """The contents of files by their absolute paths; None for files that cannot be read. No others exist."""


_carried: ContextVar[Carried | None] = ContextVar("perflint_carried", default=None)


@contextmanager
def reading_from(carried: Carried) -> Iterator[None]:
    """Read the files of another machine in place of those of this one."""
    token = _carried.set(carried)
    try:
        yield
    finally:
        _carried.reset(token)


def here() -> Path:
    """The working directory."""
    carried = _carried.get()
    return Path.cwd() if carried is None else Path(carried.here)


def absolute(path: str | Path) -> Path:
    """A path below the root of the file system."""
    carried = _carried.get()
    return Path(path).absolute() if carried is None else Path(carried.here, path)


def is_file(path: Path) -> bool:
    """True if a file exists."""
    carried = _carried.get()
    # Not `path.is_file()`: it raises for folders that may not be entered and for names that are too long.
    return os.path.isfile(path) if carried is None else str(path) in carried.contents


def is_folder(path: Path) -> bool:
    """True if a folder exists. The files of another machine come without their folders, so all may exist there."""
    return _carried.get() is not None or os.path.isdir(path)


def regular_contents(path: Path) -> bytes | None:
    """The contents of a regular file; None for others and for files that are too large. Raises OSError."""
    carried = _carried.get()
    return read_regular(path) if carried is None else carried.contents.get(str(path))


def carried_contents(path: str) -> tuple[bool, bytes | None]:
    """Whether files of another machine are read, and the contents of such a file; None if it cannot be read."""
    carried = _carried.get()
    return (False, None) if carried is None else (True, carried.contents.get(str(absolute(path))))

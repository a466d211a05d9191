"""Reading files that perflint finds by their name: they may be anything, and reading some things never ends."""

from __future__ import annotations

import os
import stat

LARGEST = 64 << 20
"""Bytes of the largest file that is read."""


def read_regular(path: str | os.PathLike[str], largest: int = LARGEST) -> bytes | None:
    """The contents of a regular file; None for pipes, devices and files of more than `largest` bytes.

    Raises OSError for a file that is missing or cannot be read.
    """
    # Without the flag, opening a pipe waits until another process writes to it.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > largest:
            return None
        # Memory is taken for all that is asked for. One byte more shows that a file grows, or has no stated size.
        data = file.read(status.st_size + 1)
        if len(data) > status.st_size:
            data += file.read(largest + 1 - len(data))
    return data if len(data) <= largest else None

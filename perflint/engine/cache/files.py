"""The files of a project as they are on the disk: when they were written, and digests of what they hold."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import NamedTuple

from perflint.config.regular import read_regular

_FRESH = 2_000_000_000
"""Nanoseconds in which a second write may leave the time of a file as it is."""


class Stamp(NamedTuple):
    """The state of a file as the file system tells it; all 0 for a path that does not exist."""

    written: int
    changed: int
    size: int
    inode: int

    def shows_edits(self, now: int) -> bool:
        """False if the file was written so shortly before `now` that another write may not change its times."""
        return self in (MISSING, FOLDER) or now - max(self.written, self.changed) > _FRESH


MISSING = Stamp(0, 0, 0, 0)
FOLDER = Stamp(0, 0, 0, -1)
"""The stamp of all folders: whether one exists matters, its entries do not."""


def stamp_of(path: str) -> Stamp:
    """The stamp of a file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return MISSING
    if not stat.S_ISREG(status.st_mode):
        return FOLDER if stat.S_ISDIR(status.st_mode) else MISSING
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def digest_of(path: str, stamp: Stamp) -> bytes:
    """A digest of the contents of a file with a stamp; empty if it cannot be read."""
    if stamp in (MISSING, FOLDER):
        return b"" if stamp == MISSING else b"folder"
    try:
        data = read_regular(path)
    except (OSError, ValueError):
        return b""
    return b"" if data is None else hashlib.blake2b(data, digest_size=16).digest()

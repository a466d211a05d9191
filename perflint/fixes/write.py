"""Put a fixed text where its file was, whole or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from perflint.source.writing import beside


class FileChangedError(Exception):
    """The file is not what was read any more; it was left as it is."""


def write_file(path: str, before: bytes, after: bytes) -> None:
    """Replace the contents `before` of a file with `after`.

    A reader sees the old file or the new one. The file keeps its mode and, where the system
    allows, its owner; a symbolic link stays one and its target changes. Raises
    FileChangedError when the file does not hold `before`, OSError when it cannot be written.
    """
    target = os.path.realpath(path)
    status = os.stat(target)
    if not os.access(target, os.W_OK):
        raise PermissionError(13, os.strerror(13), path)
    with beside(Path(target)) as stream:
        stream.write(after)
        stream.flush()
        os.fsync(stream.fileno())
        stream.close()
        _dress(stream.name, status)
        _require_unchanged(target, path, before)
        os.replace(stream.name, target)


def _dress(temporary: str, status: os.stat_result) -> None:
    """Give a file the owner, if that is allowed, and the mode of another."""
    if hasattr(os, "chown"):  # pragma: no branch - Windows has no owners
        with suppress(OSError):
            os.chown(temporary, status.st_uid, status.st_gid)
    os.chmod(temporary, stat.S_IMODE(status.st_mode))


def _require_unchanged(target: str, path: str, before: bytes) -> None:
    try:
        now = Path(target).read_bytes()
    except FileNotFoundError:
        raise FileChangedError(f"{path} was removed while it was being fixed") from None
    if now != before:
        raise FileChangedError(f"{path} changed while it was being fixed")

"""Files that are there whole, or as they were before."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, TextIO

_TEMPORARY = re.compile(r"\.perflint-[0-9a-f]{16}\.tmp")
_SECONDS = 3600.0
"""The age from which a temporary file belongs to no run any more; writing one takes less than a second."""


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes the place of `path` when the block ends well. Raises OSError.

    A pipe or a device, such as /dev/null, is written to, and not replaced.
    """
    if path.exists() and not path.is_file():
        with open(path, "wb") as device:
            yield device
        return
    with beside(path) as file:
        yield file
        file.close()
        os.chmod(file.name, 0o666 & ~_umask())
        os.replace(file.name, path)


@contextmanager
def written(path: Path) -> Iterator[TextIO]:
    """A text file to write, which takes the place of what `path` leads to when the block ends well. Raises OSError."""
    with whole(path.resolve()) as file:
        text = io.TextIOWrapper(file, "utf-8", "backslashreplace", "\n")
        yield text
        text.flush()
        text.detach()


@contextmanager
def beside(path: Path) -> Iterator[IO[bytes]]:
    """A new file in the folder of `path` that only its owner may read. It is removed if the block fails.

    So that none is left, its name is known before it is made. Those of runs that were killed are removed.
    """
    _remove_leftovers(path.parent)
    temporary = path.with_name(f".perflint-{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            yield file
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


@cache
def _remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of runs that were killed."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > _SECONDS:
                    os.unlink(entry.path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""The standard streams of the process, which may be closed or full, or have no reader any more."""

from __future__ import annotations

import io
import os
import sys

# typing takes longer to import than --version to answer.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Forgiving(io.FileIO):
    """A file that takes all that is written; what it has no room for is lost."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            return memoryview(data).nbytes


def prepare() -> None:
    """Make streams that can be written to of those that are closed.

    Messages that standard error cannot take are lost, as there is no other place for them: the exit status tells.
    What standard output cannot take is a fault, also if it is closed; flushing raises OSError then.
    """
    # In this order, so that they have the numbers of those that are closed, which no other file may get.
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.open(os.devnull, os.O_WRONLY), "w")  # noqa: SIM115
        return
    raw = _Forgiving(sys.stderr.fileno(), "wb", closefd=False)
    encoding = sys.stderr.encoding
    sys.stderr = io.TextIOWrapper(io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=True)


def discard() -> None:
    """Let nothing more reach standard output, also not what Python flushes at exit."""
    try:
        handle = sys.stdout.fileno()
    except (OSError, ValueError):
        # It is not a file: its contents are in memory.
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, handle)
    os.close(null)

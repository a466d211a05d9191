"""Ends a verification early: on Ctrl-C, on SIGTERM, or when its time is spent."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
TIME_SPENT = 1
"""The exit status where the time is spent."""


class Stopped(KeyboardInterrupt):
    """The verification ends early, with a reason and an exit status."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise Stopped on the first SIGINT or SIGTERM. Later ones are ignored, so that the copy is removed.

    A signal that the parent process had ignored stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may set handlers.
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(_SIGNALS[signal.Signals(number)], 128 + number)

    before = {number: old for number in _SIGNALS if (old := signal.getsignal(number)) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)

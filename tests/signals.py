"""Signals of processes that tests start."""

from __future__ import annotations

import os
import signal


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


HEED_INTERRUPTS = None if os.name == "nt" else _heed_interrupts
"""For `preexec_fn`: a shell without job control ignores SIGINT in its background jobs, and processes inherit that."""

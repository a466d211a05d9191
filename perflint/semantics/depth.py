"""Room on the stack for code that is nested deeper than people write it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_FRAMES = 8_000
"""Python frames; code that walks down a tree takes two to six for each level."""


@contextmanager
def deep_stack() -> Iterator[None]:
    """Allow for deep recursion; code that is nested deeper still raises RecursionError."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)

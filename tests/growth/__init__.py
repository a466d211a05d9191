"""True if work grows with its input, and no faster: by counting calls of functions, not time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import FrameType


def calls(work: Callable[[], object]) -> int:
    """How many Python and C functions some work calls."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def is_linear(counts: Sequence[int]) -> bool:
    """True if each doubling of the input costs about twice as much, at most."""
    return all(after <= 2.3 * before for before, after in pairwise(counts))

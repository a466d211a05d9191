"""True if work grows with its input, and no faster: by counting calls of functions, not time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from cProfile import Profile
from itertools import pairwise


def calls(work: Callable[[], object]) -> int:
    """How many Python and C functions some work calls."""
    profile = Profile(subcalls=False)
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


def is_linear(counts: Sequence[int]) -> bool:
    """True if each doubling of the input costs about twice as much, at most."""
    return all(after <= 2.3 * before for before, after in pairwise(counts))

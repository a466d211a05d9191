"""The lines that differ between two texts of a file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile


def changed_lines(before: Sequence[str], now: Sequence[str]) -> range:
    """The stretch of lines before, from 1, outside of which both texts are equal; the lines behind it may move."""
    same = _shared(before, now)
    rest = min(_shared(before[::-1], now[::-1]), len(before) - same, len(now) - same)
    return range(same + 1, len(before) - rest + 1)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of lines at the start that two texts share."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))

"""Picks combinations of alternatives: each alternative of each axis at least once, and random ones."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def covering(axes: Mapping[str, Sequence[_T]], extra: int, seed: str) -> list[dict[str, _T]]:
    """Combinations in which each alternative occurs, and `extra` random ones; the same ones for the same seed."""
    chance = random.Random(seed)
    orders = {name: chance.sample(list(axis), len(axis)) for name, axis in axes.items()}
    longest = max(map(len, orders.values()), default=1)
    rows = [{name: order[i % len(order)] for name, order in orders.items()} for i in range(longest)]
    rows += [{name: chance.choice(order) for name, order in orders.items()} for _ in range(extra)]
    unique: list[dict[str, _T]] = []
    for row in rows:
        if row not in unique:
            unique.append(row)
    return unique

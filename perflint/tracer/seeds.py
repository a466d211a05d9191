"""Seeds of a program's random numbers, given from outside."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable
from typing import Any

from perflint.tracer.importing import when_imported

_SHIFT = 7919
"""The number that is added to seeds to get other random numbers."""


def take_over(seed: int | None, shift: bool) -> None:
    """Seed the generators of Python, NumPy and torch, once they are imported, and with `shift` change all seeds."""
    first = None if seed is None else seed + _SHIFT * shift
    _take_over(random, ["seed"], first, shift)
    when_imported("numpy", lambda: _take_over(sys.modules["numpy"].random, ["seed"], first, shift))
    when_imported("torch", lambda: _take_over_torch(first, shift))


def _take_over_torch(seed: int | None, shift: bool) -> None:
    torch: Any = sys.modules["torch"]
    _take_over(torch, ["manual_seed"], seed, shift)
    _take_over(torch.random, ["manual_seed"], None, shift)
    _take_over(torch.cuda, ["manual_seed", "manual_seed_all"], None, shift)


def _take_over(module: Any, names: list[str], seed: int | None, shift: bool) -> None:
    if seed is not None:
        getattr(module, names[0])(seed)
    if shift:
        for name in names:
            setattr(module, name, _shifted(getattr(module, name)))


def _shifted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def shifted(seed: Any = None, *arguments: Any, **keywords: Any) -> Any:
        return function(seed + _SHIFT if isinstance(seed, int) else seed, *arguments, **keywords)

    return shifted

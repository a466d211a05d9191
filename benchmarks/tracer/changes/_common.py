"""What the programs share: they train or evaluate for some steps, or are held against themselves with a change."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

Step = Callable[[], object]
WARMUP, STEPS, ROUNDS = 5, 24, 9
BLOCK_SECONDS = 0.15


def main(build: Callable[[str], Step]) -> None:
    """Run the program as it is."""
    step = build("")
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()


def compared(build: Callable[[str], Step], change: str) -> dict[str, object]:
    """Step times in milliseconds, medians of blocks of steps that take turns, and the ratio with its extremes."""
    before, after = build(""), build(change)
    for step in (before, after):
        for _ in range(WARMUP):
            step()
    times = max(3, int(BLOCK_SECONDS * 1000 / milliseconds(before, 3)))
    rounds = []
    for number in range(ROUNDS):
        order = (before, after) if number % 2 else (after, before)
        taken = {step: milliseconds(step, times) for step in order}
        rounds.append((taken[before], taken[after]))
    ratios = [one / other for one, other in rounds]
    return {
        "before_ms": round(statistics.median(one for one, _ in rounds), 4),
        "after_ms": round(statistics.median(other for _, other in rounds), 4),
        "ratio": round(statistics.median(ratios), 4),
        "low": round(min(ratios), 4),
        "high": round(max(ratios), 4),
    }


def milliseconds(step: Step, times: int) -> float:
    """Of one step, on the GPU's clock."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        step()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / times

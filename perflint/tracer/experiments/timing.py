"""Times two ways of doing something, in turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any

WARMUP = 3
SAMPLE_SECONDS, UNQUEUED_SECONDS = 0.004, 0.06
"""Of a sample: many times what reading the clock costs. Without a queue it begins with an idle GPU, as steps do not."""
CALL_LIMIT = 50
"""Calls of a sample: what is queued behind the delay must fit into the queue."""
LEAST, MOST = 5, 40
"""Rounds of an experiment."""
_CYCLES = 2e9
"""Of a GPU in a second, rather too many."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of one call, and how they compare; as in `Experiment`."""

    before_ms: float
    after_ms: float
    ratio: float
    low: float
    high: float
    repeats: int


class Clock:
    """Times calls on the device that they run on.

    On a GPU these are CUDA events. With `queued`, the GPU is first kept busy for as long as the host
    needs to launch the calls, so that what is timed is the GPU's work: as in a program whose host
    is ahead. Without, launching counts too, where it takes longer.
    """

    def __init__(self, device: str, queued: bool) -> None:
        self._cuda = device.startswith("cuda")
        self._queued = queued and self._cuda

    @property
    def sample_seconds(self) -> float:
        """How long a sample is to be."""
        return UNQUEUED_SECONDS if self._cuda and not self._queued else SAMPLE_SECONDS

    def sample(self, run: Callable[[], object], calls: int, launching: float) -> float:
        """Milliseconds of a call; `launching` is how many seconds the host needs for one."""
        if not self._cuda:
            began = time.perf_counter()
            for _ in range(calls):
                run()
            return (time.perf_counter() - began) * 1000 / calls
        import torch

        cuda: Any = torch.cuda
        begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        if self._queued:
            cuda._sleep(int((launching * calls * 1.3 + 0.0002) * _CYCLES))
        begin.record()
        for _ in range(calls):
            run()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / calls

    def wait(self) -> None:
        """Wait until the device has nothing to do."""
        if self._cuda:
            import torch

            torch.cuda.synchronize()

    def launching(self, run: Callable[[], object]) -> float:
        """Seconds that the host needs for a call."""
        self.wait()
        began = time.perf_counter()
        run()
        return time.perf_counter() - began


def compare(before: Callable[[], object], after: Callable[[], object], clock: Clock, seconds: float) -> Timing:
    """Time two ways in turn, for about so many seconds after a warm-up."""
    both = (before, after)
    for run in both:
        began = time.perf_counter()
        for _ in range(WARMUP):
            run()
            clock.wait()
            if time.perf_counter() - began > seconds:
                break
    launching = [min(clock.launching(run) for _ in range(2)) for run in both]
    single = [clock.sample(run, 1, host) for run, host in zip(both, launching, strict=True)]
    calls = max(1, min(CALL_LIMIT, ceil(clock.sample_seconds * 1000 / max(*single, 1e-3))))
    deadline = time.perf_counter() + seconds
    samples: list[tuple[float, float]] = []
    while len(samples) < LEAST or (len(samples) < MOST and time.perf_counter() < deadline):
        # The one that comes second must not be the same each time.
        order = (0, 1) if len(samples) % 2 else (1, 0)
        times = {at: clock.sample(both[at], calls, launching[at]) for at in order}
        samples.append((times[0], times[1]))
    ratios = [one / other for one, other in samples if other > 0]
    if not ratios:
        return Timing(0.0, 0.0, 1.0, 1.0, 1.0, 0)
    old, new = (median(sample[at] for sample in samples) for at in (0, 1))
    outer = len(ratios) // 20
    kept = sorted(ratios)[outer : len(ratios) - outer]
    return Timing(old, new, median(ratios), kept[0], kept[-1], len(ratios))

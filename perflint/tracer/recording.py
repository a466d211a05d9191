"""Sums up what is seen, so that its size does not grow with the length of the run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import FrameType
from typing import Any

from perflint.tracer.allow import allowed
from perflint.tracer.events import Hits, Observation, PageableCopy, Place, Step, Sync
from perflint.tracer.places import Locator
from perflint.tracer.promises import Promises

WINDOWS = 64
"""Hits of a place are counted for at most so many groups of steps."""
STEP_LIMIT = 2048
PLACE_LIMIT = 20_000
"""Places of one kind. Programs with more make code as they run."""


@dataclass(slots=True)
class _Tally:
    """Hits of one place, and what does not change between them."""

    facts: dict[str, Any]
    outside: int = 0
    steps: int = 0
    windows: list[int] = field(default_factory=list)
    bytes: int = 0
    total_bytes: int = 0
    ms: float = 0.0

    def add(self, window: int | None, count: int = 1) -> None:
        if window is None:
            self.outside += count
            return
        self.steps += count
        self.windows.extend([0] * (window + 1 - len(self.windows)))
        self.windows[window] += count

    def halve(self) -> None:
        """Make one window of two."""
        padded = [*self.windows, 0] if len(self.windows) % 2 else self.windows
        self.windows = [sum(padded[at : at + 2]) for at in range(0, len(padded), 2)]

    def forget_steps(self) -> None:
        """All that was seen was before the recorded steps."""
        self.outside += self.steps
        self.steps = 0
        self.windows = []

    @property
    def hits(self) -> Hits:
        return Hits(self.steps, self.outside, tuple(self.windows))


@dataclass(frozen=True, slots=True)
class Where:
    """A place, and the recorded step that ran when the program was there."""

    place: Place | None
    """None for the whole process."""
    step: int | None
    """None outside of recorded steps."""
    sampled: bool = False
    """True for calls that are watched in a few recorded steps only."""


class Recording:
    """Syncs, copies, observations and steps. `records` says which hits count as those of recorded steps."""

    def __init__(self, locator: Locator, promises: Promises | None = None) -> None:
        self.locator = locator
        self._promises = promises or Promises(locator)
        self.records = False
        self.steps: list[Step] = []
        self.step = 0
        """The index of the step that runs; also how many have ended."""
        self.per_window = 1
        self._syncs: dict[Hashable, _Tally] = {}
        self._copies: dict[Hashable, _Tally] = {}
        self._observations: dict[Hashable, _Tally] = {}

    def sync(self, kind: str, frame: FrameType | None) -> Place | None:
        """The host waited for the GPU; gives the place."""
        found = self.locator.find(frame)
        if found is None:
            return None
        thread = threading.current_thread().name
        key = (found.place, kind, allowed(), found.origin, thread, self._promises.around(frame))

        def facts() -> dict[str, Any]:
            names = ("place", "kind", "allowed", "origin", "thread", "promise")
            seen = {"inner": self.locator.inner(frame), "stack": self.locator.stack(frame)}
            return dict(zip(names, key, strict=True)) | seen

        self._add(self._syncs, key, facts, self.now(None).step)
        return found.place

    def copy(self, direction: str, size: int, frame: FrameType | None) -> None:
        """Pageable memory was copied with `non_blocking=True`."""
        found = self.locator.find(frame)
        if found is None:
            return
        key = (found.place, direction, allowed())

        def facts() -> dict[str, Any]:
            return dict(zip(("place", "direction", "allowed"), key, strict=True)) | {"stack": self.locator.stack(frame)}

        if tally := self._add(self._copies, key, facts, self.now(None).step):
            tally.bytes = max(tally.bytes, size)

    def where(self, frame: FrameType | None) -> Where | None:
        """The place of a frame at this time; None without a place, or while a whole module moves."""
        found = self.locator.find(frame)
        return None if found is None or found.origin else self.now(found.place)

    def now(self, place: Place | None) -> Where:
        """A place, or None for the whole process, at this time."""
        return Where(place, self.step if self.records else None)

    def observe(
        self, fact: str, where: Where, *, bytes: int = 0, ms: float = 0.0, detail: str = "", count: int = 1
    ) -> None:
        """A witness saw an outcome of a call, now or later. The detail of the first one is kept."""
        key = (where.place, fact)
        facts = {"place": where.place, "fact": fact, "detail": detail, "sampled": where.sampled}
        if tally := self._add(self._observations, key, lambda: facts, where.step, count):
            tally.bytes = max(tally.bytes, bytes)
            tally.total_bytes += bytes
            tally.ms += ms

    def _add(
        self,
        into: dict[Hashable, _Tally],
        key: Hashable,
        facts: Callable[[], dict[str, Any]],
        step: int | None,
        count: int = 1,
    ) -> _Tally | None:
        tally = into.get(key)
        if tally is None:
            if len(into) >= PLACE_LIMIT:
                return None
            tally = into[key] = _Tally(facts())
        tally.add(None if step is None else step // self.per_window, count)
        return tally

    @property
    def _tallies(self) -> tuple[_Tally, ...]:
        return (*self._syncs.values(), *self._copies.values(), *self._observations.values())

    def end_step(self, ms: float, profiled: bool) -> None:
        """A recorded step ended."""
        self.steps.append(Step(self.step, 1, round(ms, 4), profiled))
        self.step += 1
        if self.step >= WINDOWS * self.per_window:
            self.per_window *= 2
            for tally in self._tallies:
                tally.halve()
        if len(self.steps) >= STEP_LIMIT:
            self.steps = _summed_up(self.steps)

    def time_step(self, index: int, ms: float) -> None:
        """The GPU's clock says how long a step took."""
        # Of late: what was summed up meanwhile keeps the host's time.
        for at in range(len(self.steps) - 1, -1, -1):
            step = self.steps[at]
            if step.index <= index:
                if step.index == index and step.count == 1:
                    self.steps[at] = replace(step, ms=round(ms, 4))
                return

    def restart(self, keep: bool) -> None:
        """The steps so far were none; `keep` says whether what they held still counts as recorded."""
        self.steps.clear()
        self.step = 0
        self.per_window = 1
        for tally in self._tallies:
            if keep:
                tally.windows = [tally.steps] if tally.steps else []
            else:
                tally.forget_steps()

    def syncs(self) -> tuple[Sync, ...]:
        """The syncs, the most frequent first."""
        ordered = sorted(self._syncs.values(), key=lambda tally: (-tally.steps, -tally.outside))
        return tuple(Sync(**tally.facts, hits=tally.hits) for tally in ordered)

    def copies(self) -> tuple[PageableCopy, ...]:
        """The copies, the most frequent first."""
        ordered = sorted(self._copies.values(), key=lambda tally: (-tally.steps, -tally.outside))
        return tuple(PageableCopy(**tally.facts, bytes=tally.bytes, hits=tally.hits) for tally in ordered)

    def observations(self) -> tuple[Observation, ...]:
        """The outcomes that witnesses saw, in the order of their first hits."""
        return tuple(
            Observation(
                **tally.facts,
                hits=tally.hits,
                bytes=tally.bytes,
                total_bytes=tally.total_bytes,
                ms=round(tally.ms, 4),
            )
            for tally in self._observations.values()
        )


def _summed_up(steps: list[Step]) -> list[Step]:
    """Half as many or a little more: neighbours without the profiler become one."""
    shorter: list[Step] = []
    alone = True
    for left, right in pairwise([*steps, steps[-1]]):
        if not alone:
            alone = True
        elif left is right or left.profiled or right.profiled:
            shorter.append(left)
        else:
            count = left.count + right.count
            shorter.append(Step(left.index, count, (left.ms * left.count + right.ms * right.count) / count))
            alone = False
    return shorter

"""A trace: its header, its records, and the figures that follow from them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, zip_longest
from statistics import median
from typing import TypeVar

from perflint.tracer.events import Gap, Header, Place, Record, SourceFile, Step, Sync, SyncCost

R = TypeVar("R")
BLIND = "the program imported torch by a loader of its own, which the tracer does not see"
BLIND_HELP = "put `import torch` before the code that does so, and trace again"


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace: its header, and its records by kind in the order of the file."""

    header: Header
    records: tuple[Record, ...] = ()

    def of(self, kind: type[R]) -> tuple[R, ...]:
        """The records of a kind."""
        return tuple(record for record in self.records if isinstance(record, kind))

    @property
    def has_no_gpu(self) -> bool:
        """True for a run without a GPU, also without a simulated one."""
        return not self.header.devices and not self.header.simulated

    def files(self) -> dict[str, SourceFile]:
        """The files by their real paths: below the root of the run and, for a copy of it, the current folder."""
        bases = (os.getcwd(), self.header.root)
        files = self.of(SourceFile)
        return {os.path.realpath(os.path.join(base, file.file)): file for base in bases for file in files}

    @property
    def step_ms(self) -> float | None:
        """The median time of a step without the profiler, else with it; None without steps."""
        steps = self.of(Step)
        times = [step.ms for step in steps if not step.profiled] or [step.ms for step in steps]
        return median(times) if times else None

    @property
    def profiled_steps(self) -> int:
        """How many steps the timeline covers."""
        return sum(step.count for step in self.of(Step) if step.profiled)

    @property
    def unallowed_syncs(self) -> tuple[Sync, ...]:
        """The syncs of recorded steps that nothing allows and that are the program's own."""
        return tuple(sync for sync in self.of(Sync) if sync.hits.steps and not sync.allowed and not sync.origin)

    @property
    def broken_promises(self) -> tuple[Sync, ...]:
        """The syncs in functions that must be free of them, at any time of the run, that nothing allows."""
        return tuple(sync for sync in self.of(Sync) if sync.promise and not sync.allowed and not sync.origin)

    def steps_with(self, syncs: Iterable[Sync]) -> int | None:
        """The number of recorded steps in which at least one of some syncs happened; None if that is unknown."""
        windows = [sync.hits.windows for sync in syncs if sync.hits.steps]
        if self.header.steps_per_window != 1 or not windows or not all(windows):
            return None
        return sum(map(any, islice(zip_longest(*windows, fillvalue=0), max(self.header.steps, 0))))

    @property
    def idle_share(self) -> float:
        """How much of the idle time under the profiler there is without it, from 0 to 1.

        The profiler slows the host down and not the GPU, so what it adds to a step is idle time.
        """
        steps = self.of(Step)
        profiled = [step for step in steps if step.profiled]
        plain = [step.ms for step in steps if not step.profiled]
        idle = sum(step.idle_ms for step in profiled)
        if not plain or idle <= 0:
            return 1.0
        added = sum(step.ms for step in profiled) - len(profiled) * median(plain)
        return min(max(idle - added, 0.0) / idle, 1.0)

    @property
    def costs(self) -> dict[Place, float] | None:
        """The cost of the syncs of a place per step: from the replay, if there is one.

        Else it is `Gap.cost_ms`, without what the profiler adds. None without a timeline: then it is unknown.
        Places that are missing cost nothing.
        """
        steps = self.profiled_steps
        if not steps:
            return None
        found: dict[Place, float] = {}
        if costs := self.of(SyncCost):
            for cost in costs:
                found[cost.place] = found.get(cost.place, 0.0) + cost.ms
            return found
        for gap in self.of(Gap):
            if gap.cause == "sync" and gap.place is not None:
                found[gap.place] = found.get(gap.place, 0.0) + gap.cost_ms
        share = self.idle_share
        return {place: share * cost / steps for place, cost in found.items()}

    def cost_ms(self, place: Place) -> float | None:
        """The cost of the syncs of one place per step, as in `costs`."""
        costs = self.costs
        return None if costs is None else costs.get(place, 0.0)

"""The work of the caching allocator in some steps, and the lines that hold memory when most is in use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from perflint.tracer.events import AllocatorChurn, HeldMemory, Place

_EVENTS = 400_000
"""Events of the allocator that are kept of one step; one with more is not told."""
LINES = 30
"""Lines with the most memory that are recorded."""
AFTER = 2
"""The recorded steps before the one whose history is kept: by then builtins are not watched any more."""
_Frames = Iterable[Mapping[str, Any]]


class AllocatorWatch:
    """Compares the allocator's own counts, so that it costs nothing between."""

    def __init__(self) -> None:
        self._device = -1
        self._before: dict[str, Any] = {}

    def start(self) -> None:
        """Count from here on, if the program uses a GPU."""
        import torch

        cuda: Any = torch.cuda
        if cuda.is_initialized():
            self._device = cuda.current_device()
            self._before = cuda.memory_stats(self._device)

    def stop(self, steps: int) -> tuple[AllocatorChurn, ...]:
        """The work of the allocator in `steps` steps."""
        if self._device < 0:
            return ()
        import torch

        after = torch.cuda.memory_stats(self._device)

        def grown(name: str) -> int:
            return int(after.get(name, 0)) - int(self._before.get(name, 0))

        churn = AllocatorChurn(
            self._device,
            steps,
            grown("allocation.all.allocated"),
            grown("segment.all.allocated"),
            grown("segment.all.freed"),
            grown("num_alloc_retries"),
            int(after.get("allocated_bytes.all.peak", 0)),
        )
        self._device = -1
        return (churn,)


class PeakWatch:
    """Has the allocator keep its history, with lines, for one recorded step."""

    def __init__(self, place_of: Callable[[str, int, str], Place | None]) -> None:
        self._place_of = place_of
        """Gives the place of a file, a line and a function, if these are the user's."""
        self._device = -1
        self._before = 0
        self.held: tuple[HeldMemory, ...] = ()
        """The memory that was held when most was in use in the step, the most first after that from before it."""

    def end_step(self, number: int) -> None:
        """So many recorded steps have ended."""
        if number == AFTER:
            self._start()
        elif self._device >= 0:
            self.held = self._stop()

    def abandon(self) -> None:
        """Keep no history any more."""
        if self._device >= 0:
            self._stop()

    def _start(self) -> None:
        """Record from here on, if the program uses a GPU and keeps no history itself."""
        import torch

        cuda: Any = torch.cuda
        enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
        if cuda.is_initialized() and enabled is not None and not enabled():
            self._device = torch.cuda.current_device()
            self._before = torch.cuda.memory_allocated(self._device)
            torch.cuda.memory._record_memory_history("all", context="alloc", stacks="python", max_entries=_EVENTS)

    def _stop(self) -> tuple[HeldMemory, ...]:
        import torch

        device, self._device = self._device, -1
        try:
            history = torch.cuda.memory._snapshot(device)["device_traces"][device]
        finally:
            torch.cuda.memory._record_memory_history(None)
        if len(history) >= _EVENTS:
            return ()
        return held_at_peak(history, device, self._before, self._place_of)


def held_at_peak(
    history: Iterable[Mapping[str, Any]],
    device: int,
    before: int,
    place_of: Callable[[str, int, str], Place | None],
) -> tuple[HeldMemory, ...]:
    """The memory that was held when most was in use.

    `history` has the events of the allocator as in `torch.cuda.memory._snapshot()["device_traces"]`, and `before`
    the bytes that were in use at its start.
    """
    events = [each for each in history if each["action"] in ("alloc", "free_completed")]
    in_use = most = before
    peak = 0
    for number, event in enumerate(events, 1):
        in_use += event["size"] if event["action"] == "alloc" else -event["size"]
        if in_use > most:
            most, peak = in_use, number
    live: dict[int, tuple[int, _Frames]] = {}
    for event in events[:peak]:
        if event["action"] == "alloc":
            live[event["addr"]] = event["size"], event.get("frames", ())
        elif live.pop(event["addr"], None) is None:
            before -= event["size"]
    held: dict[Place | None, list[int]] = defaultdict(list)
    for size, frames in live.values():
        found = (place_of(each["filename"], each["line"], each["name"]) for each in frames)
        held[next((place for place in found if place is not None), None)].append(size)
    lines = sorted(((sum(sizes), len(sizes), place) for place, sizes in held.items()), key=lambda each: -each[0])
    made = [HeldMemory(device, place, "step", size, count) for size, count, place in lines[:LINES]]
    return (HeldMemory(device, None, "before", before, 0), *made)

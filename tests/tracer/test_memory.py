"""The lines that hold memory when most is in use, from the history of the allocator."""

from __future__ import annotations

from typing import Any

from perflint.tracer.events import HeldMemory, Place
from perflint.tracer.memory import held_at_peak


def place_of(path: str, line: int, function: str) -> Place | None:
    """Only `train.py` is the user's."""
    return Place(path, line, 1, line, 1, function, "") if path == "train.py" else None


def event(action: str, address: int, size: int, *frames: tuple[str, int]) -> dict[str, Any]:
    found = [{"filename": name, "line": line, "name": "f"} for name, line in frames]
    return {"action": action, "addr": address, "size": size, "stream": 0, "frames": found}


def held(before: int, *events: dict[str, Any]) -> list[tuple[int, str, int, int]]:
    """The line, source, bytes and allocations of each record."""
    found = held_at_peak(events, 0, before, place_of)
    assert all(isinstance(each, HeldMemory) and each.device == 0 for each in found)
    return [(each.place.line if each.place else 0, each.source, each.bytes, each.count) for each in found]


def test_lines_of_the_user_hold_what_is_there_at_the_peak() -> None:
    torch = ("torch/nn/modules/linear.py", 9)
    found = held(
        1000,
        event("alloc", 1, 100, torch, ("train.py", 3), ("train.py", 20)),
        event("alloc", 2, 50, ("train.py", 4)),
        event("segment_alloc", 0, 9999),
        event("free_requested", 2, 50),
        event("free_completed", 2, 50),
        event("alloc", 2, 300, ("train.py", 3)),
        event("alloc", 3, 200, torch),
        event("free_completed", 1, 100),
        event("alloc", 4, 60, ("train.py", 5)),
    )
    assert found == [(0, "before", 1000, 0), (3, "step", 400, 2), (0, "step", 200, 1)]


def test_what_is_freed_before_the_peak_does_not_count() -> None:
    found = held(1000, event("free_completed", 7, 400), event("alloc", 7, 900, ("train.py", 8)))
    assert found == [(0, "before", 600, 0), (8, "step", 900, 1)]


def test_a_step_that_only_frees_was_fullest_at_its_start() -> None:
    assert held(1000, event("free_completed", 7, 400), event("alloc", 7, 100)) == [(0, "before", 1000, 0)]

"""Which copies are of pageable memory, and who made them."""

from __future__ import annotations

from importlib.util import find_spec
from types import FrameType, SimpleNamespace

import pytest

from perflint.tracer.copies import listen, pageable_direction

if find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch


@pytest.mark.parametrize(
    ("source", "target", "pinned", "expected"),
    [
        ("cpu", "cuda", False, "host-to-device"),
        ("cuda", "cpu", False, "device-to-host"),
        ("cpu", "cuda", True, ""),
        ("cuda", "cpu", True, ""),
        ("cuda", "cuda", False, ""),
        ("cpu", "cpu", False, ""),
    ],
)
def test_which_copies_the_mode_misses(source: str, target: str, pinned: bool, expected: str) -> None:
    ends = [SimpleNamespace(device=torch.device(kind), is_pinned=lambda: pinned) for kind in (source, target)]
    assert pageable_direction(*ends) == expected


def test_a_copy_from_what_is_no_tensor() -> None:
    assert pageable_direction(None, torch.ones(1)) == ""


def test_only_non_blocking_copies_are_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perflint.tracer.copies.pageable_direction", lambda source, target: "host-to-device")
    found: list[tuple[int, str]] = []

    def note(direction: str, size: int, frame: FrameType | None) -> None:
        assert frame is not None
        found.append((size, frame.f_code.co_name))

    x, y = torch.ones(3), torch.zeros(3)
    end = listen(note)
    try:
        x.to("cpu")
        x.to("cpu", torch.float64, True)
        y.copy_(x)
        assert y.copy_(x, non_blocking=True) is y and torch.equal(x, y)
        x.to("cpu", non_blocking=False)
    finally:
        end()
    x.to("cpu", non_blocking=True)
    name = "test_only_non_blocking_copies_are_asked_about"
    assert found == [(12, name), (12, name)]

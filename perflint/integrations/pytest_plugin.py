"""The mark `no_gpu_sync`: a test fails if it makes the CPU wait for the GPU.

Syncs inside `perflint.allow_sync("reason")`, those of the compiler, and moving whole modules to the
device are left alone. Without torch, and on machines without a GPU, the mark does nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

import pytest

_MARK = "no_gpu_sync"


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", f"{_MARK}: fail if the test synchronizes with the GPU (perflint)")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Watch the test itself; fixtures may synchronize."""
    if item.get_closest_marker(_MARK) is None or not ("torch" in sys.modules or find_spec("torch")):
        yield
        return
    # Loaded for marked tests only: pytest loads this plugin in every run.
    import torch  # noqa: F401

    from perflint.tracer.places import Locator
    from perflint.tracer.recording import Recording
    from perflint.tracer.syncs import listen

    recording = Recording(Locator(Path(item.config.rootpath)))

    def note(kind: str, frame: FrameType | None) -> None:
        recording.sync(kind, frame)

    end = listen(note)
    try:
        outcome = yield
    finally:
        end()
    found = [sync for sync in recording.syncs() if not sync.allowed and not sync.origin]
    if found and outcome.excinfo is None:  # type: ignore[attr-defined]
        lines = [f"{sync.place.file}:{sync.place.line}: {sync.place.text}" for sync in found]
        text = "\n  ".join(["the test made the CPU wait for the GPU:", *lines])
        outcome.force_exception(pytest.fail.Exception(text, pytrace=False))  # type: ignore[attr-defined]

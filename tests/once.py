"""Work that is done once for all processes of a run of the tests."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Any:
    """The JSON that `make` writes to a file; one process calls it, and the others wait for it."""
    root = factory.getbasetemp()
    target = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / f"{name}.json"
    begun = target.with_suffix(".begun")
    while not target.exists():
        try:
            begun.touch(exist_ok=False)
        except FileExistsError:
            time.sleep(0.1)
            continue
        try:
            make(target.with_suffix(".part"))
            target.with_suffix(".part").replace(target)
        finally:
            # Where it failed, the next process tries.
            begun.unlink()
    return json.loads(target.read_text(encoding="utf-8"))

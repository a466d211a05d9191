"""What the tests of fixes share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.once import once

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def on_a_simulated_gpu(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is wrong with each scenario on a simulated GPU, by its name; run once, in a process of its own."""

    def run(target: Path) -> None:
        command = [sys.executable, "-m", "tests.fixes.simulated", str(target)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr

    return once(tmp_path_factory, "scenarios", run)

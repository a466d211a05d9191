"""What the tests of fixes share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.once import once
from tests.tracer import warm

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def on_a_simulated_gpu(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is wrong with each scenario on a simulated GPU, by its name; run once, in a process of its own."""

    def run(target: Path) -> None:
        done = warm.script(ROOT, "tests/fixes/simulated.py", str(target))
        assert done.code == 0, done.err

    return once(tmp_path_factory, "scenarios", run)

"""Options of the whole test suite."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.cli.command import Command

# Tests of the cache name a folder.
os.environ["PERFLINT_NO_CACHE"] = "1"
# The tensors of tests are small: threads would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# As the command does, and for its reason.
gc.disable()
# On a busy machine an example takes as long as it takes.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` writes what the code does now over the golden files; `--slow` takes minutes."""
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files instead of comparing with them")
    parser.addoption("--slow", action="store_true", help="run the tests that take minutes, too")
    parser.addoption("--count", type=int, default=1_000, help="how many random programs `--slow` tries of each kind")
    parser.addoption("--first", type=int, default=0, help="the number of the first of them")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes minutes, unless it is asked for."""
    if not config.getoption("--slow"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)


def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores, since some tests wait for other processes."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """Tests that collect garbage need not look at all modules and tests."""
    gc.freeze()


def pytest_unconfigure() -> None:
    """Nor does pytest in the end."""
    gc.freeze()


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    """True if golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def perflint(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, in an empty folder."""
    return Command(tmp_path, capsys, monkeypatch)


@pytest.fixture
def stated_torch(tmp_path: Path) -> None:
    """The project of a test states a torch that warns of deprecated names, so that the default profile shows them."""
    (tmp_path / "requirements.txt").write_text("torch>=2.6\n")

"""The sample of a project, and what pytest does not collect."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

collect_ignore = ["order_sample"]
"""A project that is only checked: its tests cannot run."""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A copy of the sample, which is a project of its own: as a part of this one it would be searched with it."""
    shutil.copytree(Path(__file__).parent / "order_sample", tmp_path / "sample", ignore=_no_caches)
    (tmp_path / "sample" / "pyproject.toml").touch()
    return tmp_path / "sample"


_no_caches = shutil.ignore_patterns("__pycache__")

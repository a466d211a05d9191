"""The files of a project that have nothing to do with the checked one cost little, and the same each.

Their texts are searched and their imports are read, without parsing them.
"""

from __future__ import annotations

from collections import Counter
from cProfile import Profile as Profiler
from dataclasses import replace
from pathlib import Path

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.file import check_source
from perflint.engine.projects import Projects
from perflint.source.text import Source

AUDIT = replace(Settings(), profile=Profile.AUDIT)
MOST_CALLS = 220
"""Calls of Python functions for each file: 207, 85 of them without the search for live code."""
MOST_HASHES = 24
"""Hashes of paths for each file: 21, 3 of them without that search."""

CHECKED = "import torch\n\n\ndef scaled(x: torch.Tensor, factor):\n    return x.item() * factor\n"
OTHER = '''"""Part of a project."""

import math
import os.path as paths
from collections.abc import Iterator, Mapping, Sequence  # and not import Iterable
from typing import (
    Any,  # first
    Optional as Maybe,
)

import torch
from torch import nn
from torch.nn import functional as F

from . import settings
from .layers import Attention, Embedding, Norm
from ..tools.logging import \\
    logger


class Layer(nn.Module):
    def forward(self, x):
        return F.relu(x)
'''


def counted(folder: Path, files: int) -> Counter[str]:
    """The calls of Python functions in a check of one file of a project of some files, by their names."""
    (folder / "project").mkdir(parents=True)
    (folder / "pyproject.toml").touch()
    for name in ("__init__", *(f"part{number}" for number in range(files))):
        (folder / "project" / f"{name}.py").write_text(OTHER)
    path = folder / "project" / "checked.py"
    path.write_text(CHECKED)
    rules = active_rules(AUDIT)
    source = Source(str(path), CHECKED)
    profiler = Profiler()
    report = profiler.runcall(lambda: check_source(source, Projects(AUDIT).of(path), rules, AUDIT))
    assert not report.problems
    found: Counter[str] = Counter()
    for entry in profiler.getstats():
        if not isinstance(entry.code, str):
            found[entry.code.co_name] += entry.callcount
    return found


def test_other_files_cost_little(tmp_path: Path) -> None:
    counted(tmp_path / "first", 10)
    few, some, many = (counted(tmp_path / str(files), files) for files in (20, 60, 100))
    # Other versions of Python call more functions for a path.
    assert 10 < (many - few).total() / 80 <= MOST_CALLS
    assert (many - few)["__hash__"] / 80 <= MOST_HASHES
    assert abs((many - some).total() - (some - few).total()) < 40

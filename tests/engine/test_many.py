"""A project of many files: all findings, also from the cache and after an edit. `--slow -s` tells time and memory."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command import ROOT

FOLDER = 500
"""Files of one folder."""
MODULE = """\
from {before} import Block as Before, total as total_before


def total(values: list[float]) -> float:
    return total_before(values) + sum(values)


class Block:
    def __init__(self, width: int) -> None:
        self.width = width
        self.before: Before | None = None

    def __call__(self, values: list[float]) -> float:
        return total(values) * self.width
"""
TRAIN = """
import torch


def train(model: torch.nn.Module, loader, optimizer, block: Block):
    for x in loader:
        loss = model(x.cuda()).sum() * block.width
        loss.backward()
        optimizer.step()
        print(loss.item())
"""
EVERY = 50
"""One of so many files trains."""


def write(folder: Path, count: int) -> None:
    """Packages of modules, each of which imports the one before it."""
    (folder / "pyproject.toml").touch()
    for at in range(count):
        package = folder / f"p{at // FOLDER}"
        if at % FOLDER == 0:
            package.mkdir()
            (package / "__init__.py").touch()
        before = f"p{at // FOLDER}.m{max(at - 1, at // FOLDER * FOLDER)}"
        text = MODULE.format(before=before) + (TRAIN if at % EVERY == 0 else "")
        (package / f"m{at}.py").write_text(text)


def checked(folder: Path, cache: Path) -> tuple[int, str]:
    """The findings of a check, and its seconds, seconds of CPU and MiB in words."""
    command = [sys.executable, "-m", "perflint", "check", ".", "--output-format=concise", "-q"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PERFLINT_CACHE_DIR": str(cache)}
    environment.pop("PERFLINT_NO_CACHE", None)
    out = cache.parent / "out"
    began = time.monotonic()
    files = [(os.POSIX_SPAWN_OPEN, 1, str(out), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    process = os.posix_spawn(
        "/bin/sh", ["sh", "-c", 'cd "$0" && exec "$@"', str(folder), *command], environment, file_actions=files
    )
    _, status, used = os.wait4(process, 0)
    assert os.waitstatus_to_exitcode(status) in (0, 1)
    words = (
        f"{time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU, {used.ru_maxrss >> 10} MiB"
    )
    return sum(": TPF101 " in line for line in out.read_text().splitlines()), words


@pytest.mark.skipif(sys.platform == "win32", reason="has no wait4")
@pytest.mark.parametrize("count", [300, pytest.param(100_000, marks=pytest.mark.slow)])
def test_many_files(tmp_path: Path, count: int) -> None:
    folder, cache = tmp_path / "project", tmp_path / "cache"
    folder.mkdir()
    write(folder, count)
    expected = count // EVERY
    for what in ("first", "again", "after an edit"):
        found, words = checked(folder, cache)
        print(f"{count} files, {what}: {words}")
        assert found == expected
        with open(folder / "p0" / "m7.py", "a") as file:
            file.write(TRAIN * (what == "again"))
        expected += what == "again"

"""Two runs that fix the same files: each file is as before or fixed, whole, also where both are killed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ROOT

FUNCTION = """

def step_{number}(x: torch.Tensor):
    for _ in range(9):
        x = x * torch.zeros(9, {number}).to("cuda")
    return x
"""
COMMAND = [
    sys.executable,
    "-m",
    "perflint",
    "fix",
    ".",
    "--apply",
    "--profile=audit",
    "--no-cache",
    "-q",
    "--exit-zero",
]


def started(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(COMMAND, cwd=folder, env={"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL)


def state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.py")}


def differing(folder: Path, before: dict[str, bytes]) -> int:
    """How many files were written."""
    return sum(text != before[name] for name, text in state(folder).items())


@pytest.mark.parametrize(("files", "rounds"), [(8, 1), pytest.param(60, 6, marks=pytest.mark.slow)])
def test_two_runs_at_once(tmp_path: Path, files: int, rounds: int) -> None:
    first, fixed = tmp_path / "first", tmp_path / "fixed"
    first.mkdir()
    (first / "pyproject.toml").touch()
    for at in range(files):
        text = "import torch\n" + "".join(FUNCTION.format(number=number) for number in range(4))
        (first / f"m{at}.py").write_text(text)
    shutil.copytree(first, fixed)
    started(fixed).wait()
    before, after = state(first), state(fixed)
    assert all(after[name] != before[name] for name in before)
    written = 0
    for number in range(2 * rounds):
        folder, are_killed = tmp_path / f"run{number}", number % 2
        shutil.copytree(first, folder)
        runs = [started(folder), started(folder)]
        least = files * number // (3 * rounds)
        while are_killed and differing(folder, before) <= least and any(run.poll() is None for run in runs):
            pass
        for run in runs:
            if are_killed:
                run.kill()
            run.wait()
        now = state(folder)
        written += differing(folder, before) * are_killed
        assert all(now[name] in (before[name], after[name]) for name in now)
        started(folder).wait()
        assert state(folder) == after
    print(f"{written} of {files * rounds} files were written by runs that were killed")

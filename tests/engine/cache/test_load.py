"""Processes that check one folder with one cache while files are edited and the cache is removed."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command import ROOT, python
from tests.engine.cache.test_cache import SAMPLE

COMMANDS = (
    ["check", ".", "--output-format=json", "--profile=audit"], ["check", ".", "--jobs=2", "--output-format=json"],
    ["fix", ".", "--profile=audit"],
)  # fmt: skip


def edited(text: str, dice: random.Random) -> str:
    """A text with a new line, without one of its lines, without its end, or as it was."""
    lines = text.splitlines(keepends=True)
    at = dice.randrange(len(lines))
    more = f"\nz{dice.random()} = 1\n".replace("0.", "")
    return dice.choice([text, text + more, "".join(lines[:at] + lines[at + 1 :]), text[: dice.randrange(len(text))]])


@pytest.mark.parametrize(("processes", "seconds"), [(2, 6), pytest.param(8, 240, marks=pytest.mark.slow)])
def test_results_are_those_of_a_run_without_a_cache(tmp_path: Path, processes: int, seconds: int) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    shutil.copytree(SAMPLE, project)
    texts = {path: path.read_text() for path in project.rglob("*.py") if path.stat().st_size}
    given = {"PYTHONPATH": str(ROOT), "PERFLINT_CACHE_DIR": str(cache)}
    dice, end, running = random.Random(processes), time.monotonic() + seconds, set[subprocess.Popen[bytes]]()
    while time.monotonic() < end or running:
        while len(running) < processes and time.monotonic() < end:
            command = [sys.executable, "-m", "perflint", *dice.choice(COMMANDS)]
            log = open(tmp_path / "log", "ab")  # noqa: SIM115
            running.add(
                subprocess.Popen(command, cwd=project, env=os.environ | given, stdout=subprocess.DEVNULL, stderr=log)
            )
            log.close()
        path = dice.choice(list(texts))
        path.write_text(edited(texts[path], dice))
        if dice.random() < 0.02:
            shutil.rmtree(cache, ignore_errors=True)
        time.sleep(0.05)
        ended = {process for process in running if process.poll() is not None}
        assert all(process.returncode in (0, 1, 2) for process in ended)
        running -= ended
    log_text = (tmp_path / "log").read_text("utf-8", "replace")
    assert "crashed" not in log_text and "Traceback" not in log_text
    kept, fresh = (
        python("-m", "perflint", *COMMANDS[0], *more, cwd=project, **given).out for more in ([], ["--no-cache"])
    )
    assert kept == fresh

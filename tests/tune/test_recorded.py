"""Searches on a GPU, made again from their runs: the report, the patch and the exit status are the same."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path

import pytest

from perflint.cli import tune
from tests.tune.recording import RECORDED, replayed

PROGRAMS = sorted(path.name.removesuffix(".runs.xz") for path in RECORDED.glob("*.runs.xz"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_search_is_made_again(name: str, tmp_path: Path, update_golden: bool) -> None:
    found = replayed(name, tmp_path)
    for suffix, text in ((".txt", found.golden(name)), (".patch", found.patch)):
        if update_golden:
            (RECORDED / name).with_suffix(suffix).write_text(text, encoding="utf-8")
        assert text == (RECORDED / name).with_suffix(suffix).read_text("utf-8")
    assert (tmp_path / "program/perflint-tune.html").exists()
    # What the runs took on that machine.
    if (first := _first_gain(found.told)) is not None:
        assert first < 180


def _first_gain(told: str) -> float | None:
    """The seconds of the runs before a gain was shown; None if none was."""
    seconds = 0.0
    for line in told.splitlines():
        if run := re.search(r"\((\d+) s\)", line):
            seconds += float(run[1])
        elif (kept := re.match(r"kept .*?: ([\d.]+) ×", line)) and float(kept[1]) > 1:
            return seconds
    return None


def _parts(name: str) -> dict[str, str]:
    """The parts of a report by their titles."""
    report = (RECORDED / f"{name}.txt").read_text("utf-8")
    pieces = re.split(r"(?m)^(Kept|Not kept|Not tried):\n", report)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


@pytest.mark.parametrize("change", [*tune.NAMES, *tune.INEXACT])
def test_each_change_is_kept_in_one_search_and_has_a_reason_against_it_in_another(change: str) -> None:
    found = [{title for title, text in _parts(name).items() if f"  {change}: " in text} for name in PROGRAMS]
    assert any("Kept" in each for each in found) and any(each and "Kept" not in each for each in found)


@pytest.mark.parametrize(
    ("name", "part", "text"),
    [
        (
            "step",
            "Kept",
            "identical: 130 losses, the final parameters, buffers and optimizer state are equal; its graphs",
        ),
        ("accumulated", "Kept", "graph: the step is replayed as a CUDA graph"),
        (
            "waiting",
            "Not kept",
            "operation not permitted when stream is capturing, at `size = x.norm().item()` (train.py)",
        ),
        (
            "counting",
            "Not kept",
            "ValueError: each step changes `model['0'].seen['calls']`, which a graph does not repeat",
        ),
        ("compiled", "Kept", "compile: models are compiled, with CUDA graphs"),
        ("step", "Not kept", "compile: models are compiled, with CUDA graphs, 0."),
        ("images", "Kept", "loader: batches are prepared by worker processes"),
        ("step", "Not tried", "loader: steps wait for batches 0% of their time"),
        ("reads", "Kept", "fixes: the fixes of `perflint fix --unsafe-fixes`"),
        ("optimizer", "Kept", "fixes: the fixes of `perflint fix --unsafe-fixes`"),
    ],
)
def test_what_a_search_found(name: str, part: str, text: str) -> None:
    assert text in _parts(name)[part]


def test_a_busy_gpu_leaves_nothing_to_gain_and_that_is_said_within_five_minutes() -> None:
    _, *rows = lzma.decompress((RECORDED / "busy.runs.xz").read_bytes()).splitlines()
    assert sum(json.loads(row)["run"]["seconds"] for row in rows) < 300
    report = (RECORDED / "busy.txt").read_text("utf-8")
    assert "nothing was gained" in report and "the GPU never idle, a step would be 1.07 × as fast" in report


def test_the_guide_shows_a_recorded_search() -> None:
    guide = (RECORDED.parents[2] / "docs/guide/tune.md").read_text("utf-8")
    program, report, patch = ((RECORDED / f"step{suffix}").read_text("utf-8") for suffix in (".py", ".txt", ".patch"))
    last = re.split(r"(?m)^@@.*\n", patch)[-1]
    for block in (program[program.index("import torch") :], report.rpartition("exit status")[0], last):
        assert block in guide

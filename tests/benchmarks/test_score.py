"""The scorer of sync findings, on a recording small enough to judge by eye."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

from perflint.rules.registry import all_rules

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "accuracy"))

from run import EFFECTS, NO_CLAIM, claims_wait
from score import Place, Score, Truth, load, score

ACCURACY = Path(__file__).parents[2] / "benchmarks" / "accuracy"
RECORDING = {
    "lines": {"init": {"lib/a.py": [1, 2]}, "cuda": {"lib/a.py": [10, 11, 12, 20], "other/b.py": [5]}},
    "syncs": [
        {"file": "lib/a.py", "line": 10, "end_line": 11, "func": "f", "phases": {"cuda": 3}},
        {"file": "lib/a.py", "line": 20, "end_line": 20, "func": "g", "phases": {"cuda": 1}, "excluded": "message"},
        {"file": "lib/a.py", "line": 2, "end_line": 2, "func": "h", "phases": {"init": 1}},
        {"file": "other/b.py", "line": 5, "end_line": 5, "func": "f", "phases": {"cuda": 1}},
    ],
}


@pytest.fixture
def truth(tmp_path: Path) -> Truth:
    path = tmp_path / "truth.json.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(RECORDING, file)
    return load(path)


def judged(truth: Truth, *lines: int, packages: tuple[str, ...] = ("lib",)) -> Score:
    return score(truth, [Place("lib/a.py", line, line, "TPF101") for line in lines], packages)


def test_a_finding_on_any_line_of_a_sync_finds_it(truth: Truth) -> None:
    for line in (10, 11):
        result = judged(truth, line)
        assert (result.sites, result.recall, result.precision) == (1, 1, 1)


def test_a_finding_on_a_line_that_ran_and_never_synchronised_is_false(truth: Truth) -> None:
    result = judged(truth, 11, 12)
    assert (result.judged, result.precision) == (2, 0.5)
    assert [place.line for place in result.false] == [12]


def test_lines_that_never_ran_are_not_judged(truth: Truth) -> None:
    assert judged(truth, 99).judged == 0


def test_excluded_syncs_neither_ask_for_a_finding_nor_make_one_false(truth: Truth) -> None:
    result = judged(truth, 20)
    assert (result.sites, result.recall, result.precision) == (1, 0, 1)


def test_other_packages_do_not_count(truth: Truth) -> None:
    assert judged(truth, 10, packages=("other",)).judged == 0
    assert judged(truth, 10, packages=("lib", "other")).recall == 0.5


@pytest.mark.parametrize(
    ("name", "sites", "packages"),
    [
        ("sync_truth", 577, "gpytorch kornia monai peft sentence_transformers torchvision ultralytics"),
        ("more_truth", 724, "diffusers torch_geometric torchmetrics transformers"),
    ],
)
def test_the_recordings_are_the_ones_described(name: str, sites: int, packages: str) -> None:
    recording = load(ACCURACY / f"{name}.json.gz")
    assert len(recording.sites) == sites
    assert {site.package for site in recording.sites} == set(packages.split())


def test_rules_about_work_at_another_place_claim_no_wait() -> None:
    effects = {rule.code: rule.effect.value for rule in all_rules()}

    def claims(code: str) -> bool:
        return claims_wait({"code": code, "effect": effects[code]})

    assert [claims(code) for code in ("TPF101", "TPF123", "TPF203", "TPF204", "TPF504")] == [True] * 5
    assert [claims(code) for code in ("TPF207", "TPF211", "TPF301", "TPF402", "TPF921")] == [False] * 5
    assert all(effects[code] in EFFECTS for code in NO_CLAIM)

"""What messages estimate, held against the measurements that are checked in."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "rules"))

from cases import cases
from estimates import ALLOWED, judged, numbers

FILE = Path(__file__).parents[2] / "benchmarks" / "rules" / "results" / "estimates.json"
RESULTS = json.loads(FILE.read_text(encoding="utf-8"))


def test_a_seed_gives_the_same_cases() -> None:
    assert [case.name for case in cases(RESULTS["seed"])] == [case["case"] for case in RESULTS["cases"]]
    assert [case.source for case in cases(1)] != [case.source for case in cases(2)]


def test_numbers_are_read_out_of_messages() -> None:
    assert numbers("about 2.4 × slower; about 12% slower; not measurably slower") == [2.4, 1.12, 1.0]
    assert numbers("25% of 8 × 3") == []


def test_what_perflint_says_today_is_within_the_allowed_error() -> None:
    times = {case["case"]: {"ratio": case["ratio"]} for case in RESULTS["cases"]}
    rows = list(judged({"seed": RESULTS["seed"], "times": times}))
    # A cost that is quoted from another program is no estimate of this one.
    sized = [(row, case) for row, case in zip(rows, RESULTS["cases"], strict=True) if case["said"]]
    assert all(row["said"] in ([], case["said"]) for row, case in sized)
    assert not [row for row, _ in sized if row["verdict"] == "bad"]
    assert sum(row["verdict"] == "good" for row, _ in sized) >= 15
    wrong = [{**times[row["case"]], "ratio": row["ratio"] * (1 + 2 * ALLOWED)} for row in rows]
    doubted = judged({"seed": RESULTS["seed"], "times": dict(zip(times, wrong, strict=True))})
    assert any(row["verdict"] == "bad" for row in doubted)

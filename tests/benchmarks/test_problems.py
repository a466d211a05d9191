"""The scorer of the problems that readers listed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.accuracy.problems import Problem, outcome, problems, sets, table

FOLDER = Path(__file__).parents[2] / "benchmarks/accuracy"


def test_each_listed_problem_is_of_a_set() -> None:
    names = sets((FOLDER / "unseen.md").read_text("utf-8"))
    listed = problems((FOLDER / "unseen_problems.jsonl").read_text("utf-8"))
    assert listed
    assert {names[each.package] for each in listed} >= {"D", "E", "F", "G"}


def test_a_problem_is_shown_by_a_finding_that_begins_or_ends_at_one_of_its_lines() -> None:
    problem = Problem("a/b@0123456789", "c.py", (3, 5), "a wait")
    assert outcome(problem, [(5, 9)], []) == "shown"
    assert outcome(problem, [(1, 3)], []) == "shown"
    assert outcome(problem, [(4, 4)], [(4, 4), (5, 5)]) == "hidden"
    assert outcome(problem, [(4, 4)], [(1, 9)]) == "silent"


def test_table() -> None:
    found = {"E": Counter(shown=1, silent=1), "D": Counter(shown=2, hidden=1)}
    assert table(found).splitlines()[2:] == [
        "| D | 3 | 2 (0.67) | 1 | 0 |",
        "| E | 2 | 1 (0.50) | 0 | 1 |",
        "| all | 5 | 3 (0.60) | 1 | 1 |",
    ]

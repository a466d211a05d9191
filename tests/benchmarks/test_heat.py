"""The score of predicted heat."""

from __future__ import annotations

import pytest

from benchmarks.accuracy.heat import Row, by_unit, observed, scores, table
from perflint.tracer.events import CandidateLine


@pytest.mark.parametrize(("steps", "expected"), [(16, "often"), (8, "often"), (7, "sometimes"), (0, "never")])
def test_how_often_a_line_ran(steps: int, expected: str) -> None:
    assert observed(CandidateLine("a.py", 1, True, steps=steps), 16) == expected


def test_precision_and_recall_of_hot() -> None:
    heats = [("hot", 16), ("hot", 16), ("hot", 1), ("hot", 0), ("warm", 16), ("cold", 0)]
    lines = [(heat, CandidateLine("a.py", 1, True, steps=steps)) for heat, steps in heats]
    rows = [Row("a.py:1:1", "TPF101", heat, "step", observed(line, 16), line.steps, 16) for heat, line in lines]
    assert scores(rows) == (0.5, pytest.approx(2 / 3))
    assert "| hot | 2 | 1 | 1 |" in table(rows) and "| warm | 1 | 0 | 0 |" in table(rows)


def test_units_that_fit() -> None:
    units = [
        ("step", "often"),
        ("item", "never"),
        ("batch", "never"),
        ("epoch", "sometimes"),
        ("run", "often"),
        ("", "never"),
    ]
    rows = [Row("a.py:1:1", "TPF101", "hot", unit, seen, 0, 16) for unit, seen in units]
    assert "| batch | 0 | 0 | 1 |" in by_unit(rows) and by_unit(rows).endswith("3 of 5 fit (0.600)")

"""The measured costs: complete, consistent, and worded as they are."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from perflint.findings import Severity
from perflint.rules import worth
from perflint.rules.worth import Cost, cost

ROWS = worth.rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_consistent(row: Cost) -> None:
    assert row.scope in ("operation", "step")
    assert all(re.fullmatch(r"TPF\d{3}", code) for code in row.rules) and row.rules
    assert row.device and row.torch and row.source and row.shape
    assert row.low <= row.ratio <= row.high
    assert row.low * 0.8 <= row.bad_ms / row.good_ms <= row.high * 1.2


def test_rows_are_found_by_name() -> None:
    row = cost("vocabulary-50257-step")
    assert row.ratio == 1.503 and row.rules == ("TPF352",)
    with pytest.raises(KeyError):
        cost("no-such-row")


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (50.236, "about 50 × slower"),
        (4.42, "about 4.4 × slower"),
        (1.371, "about 37 % slower"),
        (1.1, "about 10 % slower"),
        (1.004, "not measurably slower"),
        (0.9, "not measurably slower"),
    ],
)
def test_ratios_in_words(ratio: float, said: str) -> None:
    assert replace(ROWS[0], ratio=ratio).slower == said


def test_conditions_in_words() -> None:
    row = replace(ROWS[0], dtype="bfloat16", device="NVIDIA H200")
    assert row.where == "in bfloat16 on an H200"
    assert replace(row, dtype="bfloat16 autocast", device="NVIDIA B200").where == "under bfloat16 autocast on a B200"


@pytest.mark.parametrize(
    ("scope", "ratio", "severity"),
    [
        ("step", 1.34, Severity.ERROR),
        ("step", 1.3, Severity.WARNING),
        ("step", 1.04, Severity.WARNING),
        ("step", 1.02, Severity.INFO),
        ("operation", 5.0, Severity.INFO),
    ],
)
def test_severity_is_what_a_step_loses(scope: str, ratio: float, severity: Severity) -> None:
    assert replace(ROWS[0], scope=scope, ratio=ratio).severity is severity

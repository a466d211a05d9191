"""The figures of the README are those of docs/benchmarks.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "benchmarks.md").read_text("utf-8").partition("## Accuracy:")[2].partition("\n### ")[0]


@pytest.mark.parametrize(("row", "profile"), [("default profile", "default"), ("`--profile audit`", "audit")])
def test_accuracy(row: str, profile: str) -> None:
    shown = re.search(
        rf"\| perflint [\d.]+, {re.escape(row)} \|[^|]*\|(.*)\|\n", (ROOT / "README.md").read_text("utf-8")
    )
    measured = re.search(rf"Profile `{profile}`:.*?\| \*\*all\*\* \| \d+ \|(.*?)\|\n", TABLE, re.DOTALL)
    assert shown is not None and measured is not None
    recall, _, precision, f1 = map(float, measured[1].split("|"))
    assert [cell.strip() for cell in shown[1].split("|")] == [
        f"{recall:.0%}",
        f"{precision:.0%}",
        f"{f1:.2f}",
    ]

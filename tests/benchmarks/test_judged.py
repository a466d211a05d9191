"""The findings that were judged: well formed, of rules that exist, each once."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from perflint.rules.registry import all_rules

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "accuracy"))

from judged import JUDGED, table

LINES = JUDGED.read_text(encoding="utf-8").splitlines()


def test_each_line_says_all_of_a_finding() -> None:
    codes = {rule.code for rule in all_rules()}
    for line in LINES:
        finding = json.loads(line)
        assert set(finding) == {"rule", "package", "path", "line", "profile", "true", "reason"}, line
        assert finding["rule"] in codes and finding["profile"] in ("default", "pedantic", "audit"), line
        assert isinstance(finding["true"], bool) and finding["reason"] and not finding["path"].startswith("/"), line


def test_no_finding_is_counted_twice() -> None:
    # A line may hold several findings of a rule.
    places = Counter(line for line in LINES)
    assert max(places.values()) <= 3


def test_the_table_counts() -> None:
    lines = [json.dumps({"rule": rule, "true": true}) for rule, true in (("TPF101", True), ("TPF101", False))]
    assert table("\n".join(lines)).splitlines()[-2:] == ["| TPF101 | 2 | 1 | 0.50 |", "| all | 2 | 1 | 0.50 |"]

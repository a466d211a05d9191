"""The findings that were judged: well formed, of rules that exist, each once."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from perflint.rules.registry import all_rules

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "accuracy"))

from judged import JUDGED, scores, sentence, table

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


def _line(rule: str, true: bool, profile: str = "audit") -> str:
    return json.dumps({"rule": rule, "true": true, "profile": profile})


def test_the_table_counts() -> None:
    lines = [_line("TPF101", True), _line("TPF101", False, "default"), _line("TPF105", True)]
    assert table("\n".join(lines)).splitlines()[2:] == [
        "| TPF101 | 2 | 1 | 0.50 | 1 | 0 | 0.00 |",
        "| TPF105 | 1 | 1 | 1.00 | – | – | – |",
        "| all | 3 | 2 | 0.67 | 1 | 0 | 0.00 |",
    ]


def test_the_page_of_a_rule_says_its_score() -> None:
    found = scores("\n".join([_line("TPF101", True), _line("TPF101", False, "default"), _line("TPF105", True)]))
    assert sentence(found["TPF101"]) == "Correct on real code: 1 of 2 findings (default profile: 0 of 1)."
    assert sentence(found["TPF105"]) == "Correct on real code: 1 of 1 findings."

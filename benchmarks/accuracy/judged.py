"""The share of correct findings among those that were read, by rule.

    python benchmarks/accuracy/judged.py

`judged.jsonl` has one finding a line: the rule, the package with its version, the place, the profile
that shows it (`default`, or `audit` for what only a stricter one does), whether it is true, and why.
Findings were drawn at random (`draw.py`) where there were more than could be read. Prints a table in Markdown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

JUDGED = Path(__file__).with_name("judged.jsonl")


@dataclass(slots=True)
class Score:
    """How many findings were read and true; `default_…`: of those that the default profile shows."""

    read: int = 0
    true: int = 0
    default_read: int = 0
    default_true: int = 0

    def add(self, true: bool, by_default: bool) -> None:
        """Count a finding."""
        self.read += 1
        self.true += true
        self.default_read += by_default
        self.default_true += by_default and true


def scores(text: str) -> dict[str, Score]:
    """The score of each rule, by its code."""
    found: dict[str, Score] = {}
    for line in text.splitlines():
        finding = json.loads(line)
        found.setdefault(finding["rule"], Score()).add(finding["true"], finding["profile"] == "default")
    return dict(sorted(found.items()))


def sentence(score: Score) -> str:
    """The sentence about a score on the page of a rule."""
    whole = f"Correct on real code: {score.true} of {score.read} findings"
    if score.default_read in (0, score.read):
        return f"{whole}."
    return f"{whole} (default profile: {score.default_true} of {score.default_read})."


def table(text: str) -> str:
    """The rules with the number of findings read and true."""
    lines = ["| rule | read | true | share | by default: read | true | share |", "|---|---|---|---|---|---|---|"]
    whole = Score()
    found = scores(text)
    for score in found.values():
        for name in ("read", "true", "default_read", "default_true"):
            setattr(whole, name, getattr(whole, name) + getattr(score, name))
    return "\n".join([*lines, *(_row(rule, score) for rule, score in [*found.items(), ("all", whole)])])


def _row(rule: str, score: Score) -> str:
    by_default = "– | – | –"
    if score.default_read:
        by_default = f"{score.default_read} | {score.default_true} | {score.default_true / score.default_read:.2f}"
    return f"| {rule} | {score.read} | {score.true} | {score.true / score.read:.2f} | {by_default} |"


if __name__ == "__main__":
    print(table(JUDGED.read_text(encoding="utf-8")))

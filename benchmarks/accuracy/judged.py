"""The share of correct findings among those that were read, by rule.

    python benchmarks/accuracy/judged.py
    python benchmarks/accuracy/judged.py --by-convention [NAME=FOLDER …] [--write 2026-11]

`judged.jsonl` has one finding a line: the rule, the package with its version, the place, the profile
that shows it (`default`, or `audit` for what only a stricter one does), whether it is true, and why.
Findings were drawn at random where there were more than could be read. Prints a table in Markdown.

`--by-convention` counts the findings that rest on each convention of `conventions.toml`, from the record in
`judged_conventions.jsonl`. With folders of sources, it first records anew the findings of these packages, each with
its name in `judged.jsonl`: `timm==1.0.29=src`, where `src/timm` is the package. `--write` puts the counts into
`conventions.toml`, with the month of the count.
"""

from __future__ import annotations

import argparse
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


def main() -> None:
    """Print the scores of the rules, or of the conventions."""
    parser = argparse.ArgumentParser(description="count the judged findings")
    parser.add_argument("--by-convention", action="store_true", help="by convention instead of by rule")
    parser.add_argument("source", nargs="*", metavar="NAME=FOLDER", help="record the findings of this package anew")
    parser.add_argument("--write", metavar="MONTH", help="put the counts into conventions.toml: 2026-11")
    options = parser.parse_args()
    text = JUDGED.read_text(encoding="utf-8")
    if options.by_convention:
        _by_convention(text, options.source, options.write)
    else:
        print(table(text))


def _by_convention(text: str, sources: list[str], month: str | None) -> None:
    import judged_conventions as conventions

    findings = [json.loads(line) for line in text.splitlines()]
    file = conventions.RECORD
    record = conventions.read_record(file.read_text(encoding="utf-8")) if file.exists() else {}
    for source in sources:
        package, _, folder = source.rpartition("=")
        record = {place: entries for place, entries in record.items() if place[1] != package}
        record |= conventions.recorded(findings, package, Path(folder))
        file.write_text("".join(conventions.written(record)), encoding="utf-8")
    if month is not None:
        tables = conventions.TABLES
        counted = conventions.with_counts(tables.read_text(encoding="utf-8"), conventions.sums(findings, record), month)
        tables.write_text(counted, encoding="utf-8")
    print(conventions.table(findings, record))


if __name__ == "__main__":
    main()

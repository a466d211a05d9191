"""How many of the findings that someone read were right, by rule.

    python benchmarks/accuracy/judged.py

`judged.jsonl` has one finding a line: the rule, the package with its version, the place, the profile
that it was found in, whether it is true, and why. Findings were drawn at random where there were more
than 25. Prints a table in Markdown.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

JUDGED = Path(__file__).with_name("judged.jsonl")


def table(text: str) -> str:
    """The rules with the number of findings read and true."""
    read: Counter[str] = Counter()
    true: Counter[str] = Counter()
    for line in text.splitlines():
        finding = json.loads(line)
        read[finding["rule"]] += 1
        true[finding["rule"]] += bool(finding["true"])
    lines = ["| rule | read | true | share |", "|---|---|---|---|"]
    lines += [f"| {rule} | {read[rule]} | {true[rule]} | {true[rule] / read[rule]:.2f} |" for rule in sorted(read)]
    total = f"| all | {read.total()} | {true.total()} | {true.total() / read.total():.2f} |"
    return "\n".join([*lines, total])


if __name__ == "__main__":
    print(table(JUDGED.read_text(encoding="utf-8")))

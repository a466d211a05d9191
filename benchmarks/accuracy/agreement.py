"""How far two readers agree about the same findings.

    python benchmarks/accuracy/agreement.py [--rules TPF109,TPF110]

Compares the verdicts of `second_reader.jsonl` with those of `judged.jsonl`: a table of both, the share of findings on
which they agree, and Cohen's kappa, which is 0 for the agreement of chance and 1 for full agreement. `sure` is the
second reader's confidence, from 1 (another careful reader may well say the opposite) to 3.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
VERDICTS = ("wanted", "unwanted", "false")

Pair = tuple[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", default="", metavar="CODES")
    rules = set(filter(None, parser.parse_args().rules.split(",")))
    first = {key(row): verdict(row) for row in rows("judged.jsonl")}
    second = [row for row in rows("second_reader.jsonl") if not rules or row["rule"] in rules]
    pairs = [(first[key(row)], str(row["verdict"])) for row in second]
    print("| first \\ second | " + " | ".join(VERDICTS) + " |\n|---|---:|---:|---:|")
    counts = Counter(pairs)
    for one in VERDICTS:
        print(f"| {one} | " + " | ".join(str(counts[one, other]) for other in VERDICTS) + " |")
    print("\n| findings | n | same verdict | kappa | same on wanted or not | kappa |\n|---|---:|---:|---:|---:|---:|")
    print(line("all", pairs))
    for sure in (1, 2, 3):
        of_sure = [pair for pair, row in zip(pairs, second, strict=True) if row["sure"] == sure]
        if of_sure:
            print(line(f"sure {sure}", of_sure))


def rows(name: str) -> list[dict[str, object]]:
    return [json.loads(text) for text in (HERE / name).read_text(encoding="utf-8").splitlines()]


def key(row: dict[str, object]) -> tuple[object, ...]:
    return row["rule"], row["package"], row["path"], row["line"]


def verdict(row: dict[str, object]) -> str:
    """The first reader's verdict."""
    return "wanted" if row["true"] else "unwanted" if str(row["reason"]).startswith("unwanted") else "false"


def line(name: str, pairs: Sequence[Pair]) -> str:
    wanted = [(str(one == "wanted"), str(other == "wanted")) for one, other in pairs]
    cells = [f"{share(each):.2f} | {kappa(each):.2f}" for each in (pairs, wanted)]
    return f"| {name} | {len(pairs)} | " + " | ".join(cells) + " |"


def share(pairs: Sequence[Pair]) -> float:
    return sum(one == other for one, other in pairs) / len(pairs)


def kappa(pairs: Sequence[Pair]) -> float:
    one, other = (Counter(pair[at] for pair in pairs) for at in (0, 1))
    chance = sum(one[each] * other[each] for each in one) / len(pairs) ** 2
    return (share(pairs) - chance) / (1 - chance)


if __name__ == "__main__":
    main()

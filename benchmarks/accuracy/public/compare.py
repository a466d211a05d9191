"""Compares the simulation with a GPU on the public programs: the same drivers ran in both.

    python benchmarks/accuracy/public/compare.py

`truth.json.gz` is the recording in the simulation, `h200.json.gz` that on an H200, made on a machine with a GPU and the
same checkouts by

    python tools/record_truth.py benchmarks/accuracy/public/drivers/NAME.py --root DIR --name NAME --output h200.json.gz

in the folder of each program. Places are compared by their lines, since the columns of f-strings differ between
versions of Python, and only on lines that ran in both: some programs fail on a GPU before their end.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from tools.record_truth import read

HERE = Path(__file__).parent
Document = dict[str, Any]


def main() -> None:
    """Print a row for each program, and the places that only one of the two recordings has."""
    simulated, real = read(HERE / "truth.json.gz"), read(HERE / "h200.json.gz")
    print(f"{real['gpu']}, torch {real['torch']}; simulated with torch {simulated['torch']}\n")
    print("| program | on the GPU | in both | only simulated | only on the GPU |\n|---|---|---:|---:|---:|")
    found: list[tuple[str, Document]] = []
    totals = [0, 0, 0]
    for driver, run in sorted(real["programs"].items()):
        name = Path(driver).stem
        waits, others = places(simulated, name), places(real, name)
        shared = [place for place in waits if any(overlap(place, other) for other in others)]
        extra = [place for place in waits if place not in shared and ran(real, place)]
        missed = [
            place for place in others if not any(overlap(place, other) for other in waits) and ran(simulated, place)
        ]
        counts = [len(shared), len(extra), len(missed)]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        ending = "ends" if run["status"] == 0 else "fails"
        print(f"| {name} | {ending} | {' | '.join(map(str, counts))} |")
        found += [("only simulated", place) for place in extra] + [("only on the GPU", place) for place in missed]
    print(f"| **all** | | {' | '.join(map(str, totals))} |\n")
    for which, place in found:
        print(f"{which}: {place['file']}:{place['line']}, {place['count']} times")


def places(recording: Document, program: str) -> list[Document]:
    """The places of a program that wait."""
    inside = f"{program}/"
    return [row for row in recording["syncs"] if row["file"].startswith(inside) and not row.get("excluded")]


def overlap(one: Document, other: Document) -> bool:
    """True if two places share a line."""
    return bool(one["file"] == other["file"] and one["line"] <= other["end_line"] and other["line"] <= one["end_line"])


def ran(recording: Document, place: Document) -> bool:
    """True if a line of a place ran in a recording."""
    counts = recording["counts"].get(place["file"], {})
    return any(str(line) in counts for line in range(place["line"], place["end_line"] + 1))


if __name__ == "__main__":
    main()

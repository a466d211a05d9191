"""The conventions that judged findings rest on: recorded from sources, summed, and written into the tables."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "accuracy"))

from judged import JUDGED
from judged_conventions import RECORD, TABLES, Sum, place, read_record, recorded, sums, table, with_counts, written

TRAIN = """\
import torch

def training_step(loss):
    loss.backward()
    return loss.item()

def evaluate(loader, model):
    for x in loader:
        print(model(x).sum().item())
"""


def _judged(rule: str, line: int, true: bool, path: str = "a.py") -> dict[str, object]:
    return {"rule": rule, "package": "p==1", "path": path, "line": line, "true": true}


SAMPLE = [
    _judged("TPF101", 5, True),
    _judged("TPF101", 9, False),
    _judged("TPF101", 8, True),
    _judged("TPF101", 9, True, "gone.py"),
]


def test_findings_are_recorded_from_their_sources(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TRAIN)
    record = recorded(SAMPLE, "p==1", tmp_path)
    assert record == {
        place(SAMPLE[0]): (("each-step-function", "training_step"),),
        place(SAMPLE[1]): (("loader", "*loader"),),
        place(SAMPLE[2]): None,
    }
    assert read_record("".join(written(record))) == record


def test_sums_of_a_record() -> None:
    record = {
        place(SAMPLE[0]): (("loader", "*loader"), ("model", "net")),
        place(SAMPLE[1]): (("loader", "*loader"), ("loader", "/x/")),
        place(SAMPLE[2]): None,
    }
    assert sums(SAMPLE, record) == {
        ("loader", ""): Sum(1, 2),
        ("loader", "*loader"): Sum(1, 2),
        ("loader", "/x/"): Sum(0, 1),
        ("model", ""): Sum(1, 1),
        ("model", "net"): Sum(1, 1),
    }
    lines = table(SAMPLE, record).splitlines()
    assert lines[2:4] == ["| loader |  | 2 | 1 | 0.50 |", "| loader | `*loader` | 2 | 1 | 0.50 |"]
    assert lines[-1] == "2 rest on conventions; 1 no longer reported; 1 without sources at hand"


def test_counts_replace_those_of_the_tables() -> None:
    text = '[a]\njudged = { true = 1, of = 1, date = "2026-01" }\n"loads" = "x"\n\n[b]\n# Names.\n"loads" = "y"\n'
    counted = with_counts(text, {("b", ""): Sum(3, 4), ("b", "y"): Sum(3, 4)}, "2026-11")
    assert tomllib.loads(counted) == {
        "a": {"loads": "x"},
        "b": {"judged": {"true": 3, "of": 4, "date": "2026-11"}, "loads": "y"},
    }
    assert with_counts(counted, {("b", ""): Sum(3, 4)}, "2026-11") == counted


def test_the_tables_have_the_sums_of_the_record() -> None:
    findings = [json.loads(line) for line in JUDGED.read_text(encoding="utf-8").splitlines()]
    record = read_record(RECORD.read_text(encoding="utf-8"))
    assert set(record) <= {place(finding) for finding in findings}
    counted = {concept: (each.true, each.of) for (concept, entry), each in sums(findings, record).items() if not entry}
    tables = tomllib.loads(TABLES.read_text("utf-8"))
    in_tables = {name: (one["judged"]["true"], one["judged"]["of"]) for name, one in tables.items() if "judged" in one}
    assert in_tables == counted

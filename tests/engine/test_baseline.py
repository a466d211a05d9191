"""Baselines as people and merges of git leave them, and files that are checked twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perflint.config.errors import ConfigurationError
from perflint.engine.baseline import Baseline, read_baseline
from perflint.findings import Report
from perflint.source.text import Source
from tests.output.reports import FINDINGS

ENTRY = {"code": "TPF101", "fingerprint": "ab"}
BASE = {"version": 1, "profile": "default", "findings": {"a.py": [ENTRY]}}
ODD = [
    None,
    True,
    -1,
    0,
    1.5,
    1e308,
    float("inf"),
    float("nan"),
    10**400,
    "",
    "x",
    "\0",
    "\ud800",
    [],
    {},
    [[]],
    {"a": 1},
]


def documents() -> list[dict[str, Any]]:
    """A baseline with one value in the place of another of the document."""
    made = [{**BASE, key: value} for key in BASE for value in ODD]
    for value in ODD:
        made += [{**BASE, "findings": {"a.py": listed}} for listed in (value, [value], [ENTRY, value])]
        made += [{**BASE, "findings": {"a.py": [{**ENTRY, key: value}]}} for key in ("code", "fingerprint", "count")]
    return made


def test_odd_values_are_refused_or_kept(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    kept = 0
    for made in documents():
        path.write_text(json.dumps(made))
        try:
            baseline = read_baseline(path)
        except ConfigurationError as error:
            assert "is not a baseline of perflint" in error.message
            continue
        kept += 1
        # What is read can be used, and written as it was.
        baseline.sift(Source("a.py", "x = 1\n"), Report())
        assert baseline.stale({"TPF101"}) >= 0
        baseline.write()
        assert read_baseline(path).known == {name: entries for name, entries in baseline.known.items() if entries}
    assert 0 < kept < len(documents()) / 4


@pytest.mark.parametrize("count", ["1e999", "-5", "0", "true", '"1"', "1.0"])
def test_a_count_is_a_whole_number_from_one(tmp_path: Path, count: str) -> None:
    path = tmp_path / "known.json"
    path.write_text(json.dumps(BASE).replace('"ab"', f'"ab", "count": {count}'))
    with pytest.raises(ConfigurationError):
        read_baseline(path)


def test_a_file_that_is_checked_twice_has_its_entries_twice(tmp_path: Path) -> None:
    source = Source(str(tmp_path / "a.py"), "import torch\n" * 40)
    first = Baseline(tmp_path / "known.json")
    first.sift(source, Report(findings=[FINDINGS[0]]))
    known = first.updated(set(), add=True)
    known.write()
    again = read_baseline(known.path)
    for _ in range(2):
        report = Report(findings=[FINDINGS[0]])
        again.sift(source, report)
        assert not report.findings and len(report.silenced) == 1
    assert again.stale({FINDINGS[0].code}) == 0 and again.updated(set(), add=False).size() == 1

"""The contract."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from perflint.config.settings import OutputFormat
from perflint.findings import (
    Confidence,
    Effect,
    Frequency,
    Heat,
    Need,
    Purpose,
    Report,
    Ruling,
    Safety,
    Severity,
    Span,
    Verdict,
)
from perflint.output.formats import writer
from perflint.output.merged import merged, read_report
from perflint.output.terminal import Style
from perflint.output.writer import Output
from tests.output.reports import SOURCE, finding, report

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "json-schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def document(part: Report, statistics: bool = False) -> Any:
    """What the writer writes, read again."""
    out = io.StringIO()
    to = writer(OutputFormat.JSON, Output(out, Style(True), statistics=statistics))
    to.file(SOURCE, part)
    to.finish(part)
    assert out.getvalue().endswith("}\n")
    return json.loads(out.getvalue())


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("part", [report(), Report()])
def test_it_follows_the_schema(part: Report) -> None:
    VALIDATOR.validate(document(part))


@pytest.mark.parametrize("part", [report(), Report()])
def test_statistics_follow_the_schema(part: Report) -> None:
    written = document(part, statistics=True)
    VALIDATOR.validate(written)
    assert "findings" not in written
    assert sum(each["count"] for each in written["statistics"]) == len(part.findings)


def test_the_schema_is_strict_enough() -> None:
    good = document(report())
    for path in (("version",), ("summary", "hidden"), ("findings", 0, "heat"), ("errors", 0, "internal")):
        bad = json.loads(json.dumps(good))
        at = bad
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]
        assert not VALIDATOR.is_valid(bad), path
    bad = json.loads(json.dumps(good))
    bad["findings"][0]["line"] = 0
    assert not VALIDATOR.is_valid(bad)


def test_the_schema_knows_every_grade() -> None:
    properties = SCHEMA["$defs"]["finding"]["properties"]
    for key, kind in (("severity", Severity), ("confidence", Confidence), ("heat", Heat), ("effect", Effect)):
        assert properties[key]["enum"] == [member.value for member in kind]
    judgement = properties["judgement"]["oneOf"][1]["properties"]
    for key, facts in (("frequency", Frequency), ("purpose", Purpose), ("need", Need)):
        assert judgement[key]["enum"] == [member.value for member in facts]
    assert SCHEMA["$defs"]["ruling"]["enum"] == [member.value for member in Ruling]
    assert SCHEMA["$defs"]["safety"]["enum"] == [member.value for member in Safety]


def test_members() -> None:
    written = document(report())
    assert list(written) == ["version", "findings", "silenced", "elsewhere", "errors", "summary"]
    assert written["findings"][0] == {
        "path": "src/train.py",
        "cell": None,
        "line": 2,
        "column": 11,
        "end_line": 2,
        "end_column": 30,
        "code": "TPF101",
        "name": "scalar-read-in-loop",
        "url": None,
        "message": "`.item()` waits for the device",
        "why": None,
        "severity": "warning",
        "confidence": "high",
        "heat": "hot",
        "judgement": None,
        "effect": "sync",
        "help": "Read it once, after the loop",
        "cost": None,
        "function": None,
        "group": None,
        "fix": {
            "safety": "safe",
            "message": "Accumulate on the device",
            "edits": [
                {"cell": None, "line": 2, "column": 11, "end_line": 2, "end_column": 23, "text": "x"},
                {"cell": None, "line": 1, "column": 1, "end_line": 1, "end_column": 1, "text": "total = 0\n"},
            ],
            "imports": ["import torch"],
            "since": None,
        },
        "verdict": None,
    }
    assert written["errors"] == [
        {
            "path": "src/bad.py",
            "cell": None,
            "line": 3,
            "column": 7,
            "message": "syntax error: invalid syntax",
            "help": "other files were checked",
            "internal": False,
        },
        {
            "path": "gone.py",
            "cell": None,
            "line": None,
            "column": None,
            "message": "no such file or folder",
            "help": None,
            "internal": False,
        },
        {
            "path": "src/odd.py",
            "cell": None,
            "line": 4,
            "column": None,
            "message": "rule TPF101 crashed",
            "help": None,
            "internal": True,
        },
    ]
    assert written["summary"] == {
        "files": 12,
        "lines": 3400,
        "findings": 3,
        "errors": 3,
        "suppressed": 2,
        "baseline": 1,
        "unchanged": 0,
        "fixable": {"safe": 1, "unsafe": 1, "risky": 0, "display-only": 1},
        "hidden": {"pedantic": 4, "audit": 30},
        "verdicts": {},
        "rules": {"TPF101": 1, "TPF102": 2},
    }


def test_paths_that_no_encoding_knows_survive() -> None:
    part = report()
    part.problems[1:] = []
    part.problems[0] = part.problems[0].__class__("src/\udcff.py", "bad")
    assert document(part)["errors"][0]["path"] == "src/\udcff.py"


def test_a_verdict() -> None:
    verdict = Verdict(Ruling.CONFIRMED, "1.5 ms of 10 ms a step (15%), once a step", 1.5, 0.15, 1.0)
    judged = Report(findings=[finding(Span(2, 11, 2, 30), verdict=verdict)], verdicts={Ruling.REFUTED: 2})
    written = document(judged)
    VALIDATOR.validate(written)
    assert written["findings"][0]["verdict"] == {
        "ruling": "confirmed",
        "why": "1.5 ms of 10 ms a step (15%), once a step",
        "ms": 1.5,
        "share": 0.15,
        "per_step": 1.0,
        "ratio": None,
    }
    assert written["summary"]["verdicts"] == {"refuted": 2}


def test_a_report_is_read_again_from_its_document() -> None:
    part = report()
    seen = Verdict(Ruling.CONFIRMED, "it waited", ms=1.5, share=0.25, per_step=2, ratio=None)
    part.findings = [replace(each, verdict=seen, group="src/train.py:1:1:TPF101") for each in part.findings]
    assert read_report(json.dumps(document(part)).encode()) == part


def test_merged_findings_of_traces_stand_by_cost() -> None:
    dear, cheap = (Verdict(Ruling.CONFIRMED, "it waited", ms=ms) for ms in (9.0, 1.0))
    first = Report(findings=[finding(Span(1, 1, 1, 2), path="a.py", verdict=cheap)])
    second = Report(findings=[finding(Span(1, 1, 1, 2), path="b.py", verdict=dear)])
    assert [each.path for each in merged([first, second]).findings] == ["b.py", "a.py"]

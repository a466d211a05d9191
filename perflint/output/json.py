"""Findings as JSON: a contract, described by docs/json-schema.json."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, TextIO

from perflint.findings import Edit, Finding, Fix, Problem, Report, Safety, Verdict
from perflint.output.statistics import Count, counted
from perflint.output.summary import fixable
from perflint.output.terminal import Style
from perflint.output.writer import Writer
from perflint.source.text import Source

VERSION = 1


class JsonWriter(Writer):
    """One document for a run, with its findings or, for statistics, with their count by rule."""

    def __init__(self, out: TextIO, style: Style, statistics: bool = False) -> None:
        super().__init__(out, style)
        self._statistics = statistics

    def file(self, source: Source, report: Report) -> None:
        """Nothing: the document is written as one."""

    def finish(self, report: Report) -> None:
        json.dump(document(report, self._statistics), self.out, indent=2)
        self.out.write("\n")


def document(report: Report, statistics: bool = False) -> dict[str, Any]:
    """A report as values of JSON: its findings, or the count of each rule."""
    if statistics:
        body: dict[str, Any] = {"statistics": [_count(each) for each in counted(report)]}
    else:
        body = {"findings": [_finding(finding) for finding in report.findings]}
    return {
        "version": VERSION,
        **body,
        "errors": [_problem(problem) for problem in report.problems],
        "summary": _summary(report),
    }


def _count(each: Count) -> dict[str, Any]:
    safety = None if each.safety is None else each.safety.value
    return {"code": each.code, "name": each.name, "count": each.count, "fixable": safety}


def _finding(finding: Finding) -> dict[str, Any]:
    span = finding.span
    return {
        "path": finding.path,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "why": finding.why,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "heat": finding.heat.value,
        "effect": finding.effect.value,
        "help": finding.help,
        "cost": finding.cost,
        "function": finding.function,
        "group": finding.group,
        "fix": None if finding.fix is None else _fix(finding.fix),
        "verdict": None if finding.verdict is None else _verdict(finding.verdict),
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "ruling": verdict.ruling.value,
        "why": verdict.why,
        "ms": verdict.ms,
        "share": verdict.share,
        "per_step": verdict.per_step,
        "ratio": verdict.ratio,
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "safety": fix.safety.value,
        "message": fix.message,
        "edits": [_edit(edit) for edit in fix.edits],
        "imports": list(fix.imports),
        "since": None if fix.since is None else f"{fix.since[0]}.{fix.since[1]}",
    }


def _edit(edit: Edit) -> dict[str, Any]:
    span = edit.span
    return {
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "text": edit.text,
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "path": problem.path,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
        "help": problem.help,
        "internal": problem.internal,
    }


def _summary(report: Report) -> dict[str, Any]:
    fixes = fixable(report.findings)
    return {
        "files": report.files,
        "lines": report.lines,
        "findings": len(report.findings),
        "errors": len(report.problems),
        "suppressed": report.suppressed,
        "fixable": {safety.value: fixes[safety] for safety in Safety},
        "hidden": report.hidden,
        "verdicts": {ruling.value: count for ruling, count in report.verdicts.items()},
        "rules": dict(sorted(Counter(finding.code for finding in report.findings).items())),
    }

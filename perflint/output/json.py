"""Findings as JSON: a contract, described by docs/json-schema.json."""

from __future__ import annotations

from collections import Counter
from typing import Any

from perflint.config.settings import Profile
from perflint.findings import (
    Edit,
    Finding,
    Fix,
    Judgement,
    Problem,
    Report,
    Ruling,
    Safety,
    Silenced,
    Silencer,
    Verdict,
)
from perflint.output.statistics import Count, counted
from perflint.output.summary import fixable
from perflint.output.writer import rule_url as url_of

VERSION = 1


def document(report: Report, statistics: bool = False, rule_url: str | None = None) -> dict[str, Any]:
    """A report as values of JSON: its findings, or the count of each rule."""
    if statistics:
        body: dict[str, Any] = {"statistics": [_count(each) for each in counted(report)]}
    else:
        body = {
            "findings": [finding_object(finding, rule_url) for finding in report.findings],
            "silenced": [_silenced(each, rule_url) for each in report.silenced],
            "elsewhere": [
                {"path": each.path, "function": each.function, "count": each.count} for each in report.elsewhere
            ],
        }
    return {
        "version": VERSION,
        **body,
        "errors": [problem_object(problem) for problem in report.problems],
        "summary": summary_object(report),
    }


def _silenced(each: Silenced, rule_url: str | None) -> dict[str, Any]:
    return {"by": each.by.value, "reason": each.reason, "finding": finding_object(each.finding, rule_url)}


def _count(each: Count) -> dict[str, Any]:
    safety = None if each.safety is None else each.safety.value
    return {"code": each.code, "name": each.name, "count": each.count, "fixable": safety}


def finding_object(finding: Finding, rule_url: str | None = None) -> dict[str, Any]:
    """A finding; `rule_url` is the address of the pages of rules, with `{name}` or `{code}`."""
    span = finding.span
    return {
        "path": finding.path,
        "cell": finding.cell,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "code": finding.code,
        "name": finding.name,
        "url": url_of(rule_url, finding),
        "message": finding.message,
        "why": finding.why,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "heat": finding.heat.value,
        "judgement": None if finding.judgement is None else judgement_object(finding.judgement),
        "effect": finding.effect.value,
        "help": finding.help,
        "cost": finding.cost,
        "function": finding.function,
        "group": finding.group,
        "fix": None if finding.fix is None else _fix(finding.fix),
        "verdict": None if finding.verdict is None else _verdict(finding.verdict),
    }


def judgement_object(judgement: Judgement) -> dict[str, Any]:
    """How much a finding counts at its place."""
    return {
        "frequency": judgement.frequency.value,
        "purpose": judgement.purpose.value,
        "evidence": judgement.evidence,
        "need": judgement.need.value,
        "is_information": judgement.is_information,
        "reason": judgement.reason,
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
        "cell": edit.cell,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "text": edit.text,
    }


def problem_object(problem: Problem) -> dict[str, Any]:
    """A file that could not be checked, or a fault of perflint."""
    return {
        "path": problem.path,
        "cell": problem.cell,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
        "help": problem.help,
        "internal": problem.internal,
    }


def summary_object(report: Report) -> dict[str, Any]:
    """The numbers of a run."""
    fixes = fixable(report.findings)
    part, parts = report.shard
    return {
        **({"shard": f"{part}/{parts}", "listing": report.listing} if parts > 1 else {}),
        "files": report.files,
        "lines": report.lines,
        "findings": len(report.findings),
        "errors": len(report.problems),
        "suppressed": report.silenced_by(Silencer.COMMENT),
        "baseline": report.silenced_by(Silencer.BASELINE),
        "unchanged": report.unchanged,
        "fixable": {safety.value: fixes[safety] for safety in Safety},
        "hidden": {each.value: report.hidden[each.value] for each in Profile if each.value in report.hidden},
        "verdicts": {ruling.value: report.verdicts[ruling] for ruling in Ruling if ruling in report.verdicts},
        "rules": dict(sorted(Counter(finding.code for finding in report.findings).items())),
    }

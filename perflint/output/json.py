"""Findings as JSON: a contract, described by docs/json-schema.json."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Any

from perflint.config.settings import Profile
from perflint.findings import Finding, Fix, Judgement, Problem, Report, Ruling, Safety, Silenced, Silencer
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
            "elsewhere": [values_of(each, "path function count") for each in report.elsewhere],
        }
    return {
        "version": VERSION,
        **body,
        "errors": [problem_object(problem) for problem in report.problems],
        "summary": summary_object(report),
    }


def values_of(thing: object, names: str) -> dict[str, Any]:
    """Some attributes of an object as values of JSON, by their names."""
    found = {name: getattr(thing, name) for name in names.split()}
    return {name: value.value if isinstance(value, Enum) else value for name, value in found.items()}


def _silenced(each: Silenced, rule_url: str | None) -> dict[str, Any]:
    return {**values_of(each, "by reason"), "finding": finding_object(each.finding, rule_url)}


def _count(each: Count) -> dict[str, Any]:
    safety = None if each.safety is None else each.safety.value
    return {**values_of(each, "code name count"), "fixable": safety}


def finding_object(finding: Finding, rule_url: str | None = None) -> dict[str, Any]:
    """A finding; `rule_url` is the address of the pages of rules, with `{name}` or `{code}`."""
    return {
        **values_of(finding, "path cell"),
        **values_of(finding.span, _SPAN),
        **values_of(finding, "code name"),
        "url": url_of(rule_url, finding),
        **values_of(finding, "message why severity confidence heat"),
        "judgement": None if finding.judgement is None else judgement_object(finding.judgement),
        **values_of(finding, "effect help cost function group"),
        "fix": None if finding.fix is None else _fix(finding.fix),
        "verdict": None if finding.verdict is None else values_of(finding.verdict, _VERDICT),
    }


_SPAN = "line column end_line end_column"
_VERDICT = "ruling why ms share per_step ratio"


def judgement_object(judgement: Judgement) -> dict[str, Any]:
    """How much a finding counts at its place."""
    return values_of(judgement, "frequency purpose evidence need is_information reason")


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        **values_of(fix, "safety message"),
        "edits": [{"cell": edit.cell, **values_of(edit.span, _SPAN), "text": edit.text} for edit in fix.edits],
        "imports": list(fix.imports),
        "since": None if fix.since is None else f"{fix.since[0]}.{fix.since[1]}",
    }


def problem_object(problem: Problem) -> dict[str, Any]:
    """A file that could not be checked, or a fault of perflint."""
    return values_of(problem, "path cell line column message help internal")


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

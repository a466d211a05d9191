"""SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from perflint import __version__
from perflint.engine.fingerprints import Fingerprints
from perflint.engine.rulebook import all_rules
from perflint.findings import WRITABLE, Edit, Effect, Finding, Fix, Problem, Report, Severity, Silenced, Silencer, Span
from perflint.fixes.imports import import_edits
from perflint.output.pages import explanation, summary
from perflint.output.plain import problem_sentences, repository_path, sentences
from perflint.output.terminal import printable
from perflint.output.writer import DocumentWriter, Output, rule_url
from perflint.source.text import Source

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "perflint/v1"
"""The name of the fingerprints, with the version of their algorithm."""
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_KINDS = {Silencer.COMMENT: "inSource", Silencer.BASELINE: "external"}

Object = dict[str, Any]


class SarifWriter(DocumentWriter):
    """One run with its rules, results and notifications; silenced findings are results with a suppression."""

    knows_cells = False

    def __init__(self, to: Output) -> None:
        super().__init__(to)
        self._results: list[Object] = []
        self._rules: dict[str, int] = {}
        """The index of each rule that a result has."""
        self._found: list[Finding] = []
        """One finding of each of these rules."""
        self._fingerprints = Fingerprints()

    def file(self, source: Source, report: Report) -> None:
        for finding in report.findings:
            self._results.append(self._result(finding, source))
        for silenced in report.silenced:
            self._results.append(self._result(silenced.finding, source) | {"suppressions": [_suppression(silenced)]})

    def document(self, report: Report) -> str:
        problems = report.problems
        run: Object = {
            "tool": {"driver": self._driver()},
            "columnKind": "unicodeCodePoints",
            "invocations": [
                {
                    "executionSuccessful": not problems,
                    "toolExecutionNotifications": [_notification(problem) for problem in problems],
                }
            ],
            "results": self._results,
        }
        return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"

    def _result(self, finding: Finding, source: Source) -> Object:
        if finding.code not in self._rules:
            self._rules[finding.code] = len(self._rules)
            self._found.append(finding)
        location: Object = {"physicalLocation": _physical(finding.path, _region(finding.span))}
        if finding.function:
            location["logicalLocations"] = [{"fullyQualifiedName": printable(finding.function), "kind": "function"}]
        result: Object = {
            "ruleId": finding.code,
            "ruleIndex": self._rules[finding.code],
            "level": _LEVELS[finding.severity],
            "message": {"text": "\n".join(sentences(finding))},
            "locations": [location],
            "partialFingerprints": {FINGERPRINT: self._fingerprints.of(finding, source)},
            "properties": _properties(finding),
        }
        if finding.fix is not None and finding.fix.safety in WRITABLE:
            result["fixes"] = [_fix(finding.fix, finding.path, source)]
        return result

    def _driver(self) -> Object:
        return {
            "name": "perflint",
            "version": __version__,
            "semanticVersion": __version__,
            "rules": list(_rules(self._found, self.to)),
        }


def _rules(found: Sequence[Finding], to: Output) -> Iterable[Object]:
    """The descriptions of the rules of some findings."""
    known = {rule.code: rule for rule in all_rules(to.settings)} if found else {}
    for finding in found:
        entry: Object = {
            "id": finding.code,
            "name": finding.name,
            "properties": {"tags": ["performance", finding.effect.value]},
        }
        url = rule_url(to.rule_url, finding)
        if url:
            entry["helpUri"] = url
        rule = known.get(finding.code)
        if rule is not None:
            page = explanation(rule)
            tags = ["correctness" if rule.effect is Effect.CORRECTNESS else "performance", rule.effect.value]
            entry |= {
                "shortDescription": {"text": f"{finding.name}: {summary(rule)}"},
                "fullDescription": {"text": summary(rule)},
                "help": {"text": page, "markdown": page},
                "defaultConfiguration": {"level": _LEVELS[rule.severity]},
                "properties": {"tags": list(dict.fromkeys(tags))},
            }
        yield entry


def _properties(finding: Finding) -> Object:
    facts = {
        "confidence": finding.confidence.value,
        "heat": finding.heat.value,
        "effect": finding.effect.value,
        "why": finding.why,
        "cost": finding.cost,
    }
    return {name: value for name, value in facts.items() if value}


def _suppression(silenced: Silenced) -> Object:
    reason = {"justification": printable(silenced.reason)} if silenced.reason else {}
    return {"kind": _KINDS[silenced.by], **reason}


def _fix(fix: Fix, path: str, source: Source) -> Object:
    edits = [*fix.edits, *import_edits(source, fix.imports)]
    change = {"artifactLocation": _artifact(path), "replacements": [_replacement(edit) for edit in edits]}
    return {
        "description": {"text": f"{printable(fix.message)} ({fix.safety.value})"},
        "artifactChanges": [change],
    }


def _replacement(edit: Edit) -> Object:
    return {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}}


def _notification(problem: Problem) -> Object:
    notification: Object = {"level": "error", "message": {"text": "\n".join(problem_sentences(problem))}}
    if problem.path:
        region = {"startLine": problem.line} if problem.line is not None else None
        notification["locations"] = [{"physicalLocation": _physical(problem.path, region)}]
    return notification


def _physical(path: str, region: Object | None) -> Object:
    return {"artifactLocation": _artifact(path), **({"region": region} if region else {})}


def _artifact(path: str) -> Object:
    """A path as a URI, relative to the root of the repository where it is below that."""
    shown = repository_path(path)
    uri = quote(shown.encode("utf-8", "surrogateescape"))
    return {"uri": f"file://{uri}"} if shown.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}


def _region(span: Span) -> Object:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


WRITER = SarifWriter

"""JUnit XML: each file is a suite, and each finding a failed test."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from perflint.findings import Finding, Problem, Report
from perflint.output.plain import problem_sentences, repository_path, sentences
from perflint.output.terminal import printable
from perflint.output.writer import DocumentWriter, Output
from perflint.source.text import Source


class JUnitWriter(DocumentWriter):
    """A file without findings is a test that passed."""

    knows_cells = False

    def __init__(self, to: Output) -> None:
        super().__init__(to)
        self._findings: dict[str, list[Finding]] = {}

    def file(self, source: Source, report: Report) -> None:
        self._findings.setdefault(source.path, []).extend(report.findings)

    def document(self, report: Report) -> str:
        problems: dict[str, list[Problem]] = {}
        for problem in report.problems:
            problems.setdefault(problem.path, []).append(problem)
        paths = dict.fromkeys([*self._findings, *problems])
        cases = {path: _cases(path, self._findings.get(path, ()), problems.get(path, ())) for path in paths}
        failures, errors = len(report.findings), len(report.problems)
        tests = sum(map(len, cases.values()))
        lines = [
            '<?xml version="1.0" encoding="utf-8"?>',
            f'<testsuites name="perflint" tests="{tests}" failures="{failures}" errors="{errors}">',
        ]
        for path, suite in cases.items():
            counts = f'tests="{len(suite)}" failures="{len(self._findings.get(path, ()))}"'
            wrong = f'errors="{len(problems.get(path, ()))}" skipped="0"'
            lines += [f"  <testsuite name={_attribute(_name(path))} {counts} {wrong}>", *suite, "  </testsuite>"]
        return "\n".join([*lines, "</testsuites>", ""])


def _cases(path: str, findings: Sequence[Finding], problems: Sequence[Problem]) -> list[str]:
    """The tests of a file; one that passed if there are no findings and no problems."""
    name = _attribute(_name(path))
    cases = [
        _case(name, f"{finding.code} {finding.name}", "failure", finding.severity.value, sentences(finding), at)
        for finding in findings
        for at in [f"{finding.span.line}:{finding.span.column}"]
    ]
    cases += [
        _case(name, "perflint", "error", "error", problem_sentences(problem), str(problem.line or 1))
        for problem in problems
    ]
    return cases or [f'    <testcase name="perflint" classname={name} file={name}/>']


def _case(path: str, name: str, kind: str, type: str, lines: Sequence[str], at: str) -> str:
    text = escape("\n".join([f"line {at}", *lines]))
    head = f'    <testcase name={_attribute(f"{name} {at}")} classname={path} file={path} line="{at.split(":")[0]}">'
    body = f'      <{kind} type="{type}" message={_attribute(lines[0])}>{text}</{kind}>'
    return f"{head}\n{body}\n    </testcase>"


def _name(path: str) -> str:
    return printable(repository_path(path)) if path else "perflint"


def _attribute(text: str) -> str:
    return quoteattr(text)


WRITER = JUnitWriter

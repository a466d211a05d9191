"""Markdown for a pull request or the summary of a job: a table, and the details of each finding folded below it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perflint.findings import Finding, Report, Severity
from perflint.output.plain import problem_sentences, repository_path
from perflint.output.summary import summary_text, verdict_text
from perflint.output.terminal import Style, printable
from perflint.output.writer import DocumentWriter, marker, rule_url

_MOST = 200
"""Findings in the table: GitHub takes comments of up to 65,536 characters."""
_SIGNS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "info"}
_SPECIAL = re.compile(r"[&<>|`*_\[\]\\~@#$]|(?<=http):|(?<=https):|(?<=www)\.")
_CODE = re.compile(r"`([^`]+)`")


class MarkdownWriter(DocumentWriter):
    """All texts from the code are escaped: they can make no links, mentions or HTML."""

    def document(self, report: Report) -> str:
        return "\n".join(self._lines(report)) + "\n"

    def _lines(self, report: Report) -> Iterator[str]:
        yield "## perflint"
        yield ""
        for line in summary_text(report, Style(False)).splitlines():
            yield f"{formatted(line)}  "
        if report.findings:
            yield ""
            yield "| Place | Severity | Rule | Finding |"
            yield "|---|---|---|---|"
            yield from (self._row(finding) for finding in report.findings[:_MOST])
            if len(report.findings) > _MOST:
                yield f"| … | | | {len(report.findings) - _MOST} more |"
            yield ""
            yield from self._details(report.findings[:_MOST])
        if report.problems:
            yield ""
            yield "**Not checked**"
            yield ""
            for problem in report.problems:
                place = f"{repository_path(problem.place)}: " if problem.path else ""
                yield f"- {escaped(place)}{formatted('; '.join(problem_sentences(problem)))}"

    def _row(self, finding: Finding) -> str:
        place = escaped(f"{repository_path(finding.place)}:{finding.span.line}")
        url = rule_url(self.to.rule_url, finding)
        code = f'<a href="{escaped(url)}">{finding.code}</a>' if url else finding.code
        trace = f" ({formatted(verdict_text(finding.verdict))})" if finding.verdict is not None else ""
        text = f"{escaped(marker(finding))}{formatted(finding.message)}{trace}"
        return f"| {place} | {_SIGNS[finding.severity]} | {code} {escaped(finding.name)} | {text} |"

    def _details(self, findings: list[Finding]) -> Iterator[str]:
        yield "<details><summary>Reasons, help and costs</summary>"
        yield ""
        for finding in findings:
            yield f"- **{escaped(f'{repository_path(finding.place)}:{finding.span.line}')}** {finding.code}"
            notes = {
                "why": finding.why,
                "help": finding.help,
                "fix": finding.fix and f"{finding.fix.message} ({finding.fix.safety.value})",
                "cost": finding.cost,
            }
            yield from (f"  - {label}: {formatted(text)}" for label, text in notes.items() if text)
        yield ""
        yield "</details>"


def formatted(text: str) -> str:
    """A text in which only what stands in backticks is formatted, as code."""
    parts = _CODE.split(printable(text))
    return "".join(f"<code>{escaped(part)}</code>" if at % 2 else escaped(part) for at, part in enumerate(parts))


def escaped(text: str) -> str:
    """A text that Markdown and HTML show as it is, also in a table."""
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", printable(text))


WRITER = MarkdownWriter

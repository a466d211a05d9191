"""Markdown for a pull request or the summary of a job: a table, and the details of each finding folded below it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from itertools import accumulate, takewhile

from perflint.findings import Finding, Problem, Report, Severity
from perflint.output.plain import problem_sentences, repository_path
from perflint.output.summary import count, summary_text, verdict_text
from perflint.output.terminal import Style, printable
from perflint.output.writer import DocumentWriter, marker, rule_url

_LARGEST = 65_536
"""Bytes of a document: GitHub takes comments of as many characters."""
_FRAME = 500
"""Bytes of the fixed texts."""
_ALL = "`perflint check` shows all"
_SIGNS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "info"}
_SPECIAL = re.compile(r"[&<>|`*_\[\]\\~@#$]")
_LINK = re.compile(r"(?<=[@#])(?=\w)|(?<=:)(?=//)|(?<=www)(?=\.)|(?<=GH)(?=-\d)", re.IGNORECASE)
"""The places at which addresses, mentions and numbers of issues are broken: services link escaped ones, too."""
_BREAK = "\u200b"
_CODE = re.compile(r"`([^`]+)`")


class MarkdownWriter(DocumentWriter):
    """All texts from the code are escaped: they can make no links, mentions or HTML."""

    def document(self, report: Report) -> str:
        summary = summary_text(report, Style(False)).splitlines()
        lines = [f"{formatted(line)}  \n" for line in summary]
        head = "".join(["## perflint\n\n", *lines[: _fitting(lines, _LARGEST // 4)]])
        problems = _problems(report.problems, _LARGEST // 4)
        room = _LARGEST - _FRAME - len((head + problems).encode())
        return head + self._findings(report.findings, room) + problems

    def _findings(self, findings: list[Finding], room: int) -> str:
        """The table of findings, and their details, as far as there is room."""
        if not findings:
            return ""
        rows, details = list(map(self._row, findings)), list(map(_details, findings))
        shown = _fitting(map(str.__add__, rows, details), room)
        left = len(findings) - shown
        note = f"**{count(left, 'more finding')}** without room here; {_ALL}.\n\n" if left else ""
        return (
            f"\n| Place | Severity | Rule | Finding |\n|---|---|---|---|\n{''.join(rows[:shown])}\n{note}"
            f"<details><summary>Reasons, help and costs</summary>\n\n{''.join(details[:shown])}\n</details>\n"
        )

    def _row(self, finding: Finding) -> str:
        url = rule_url(self.to.rule_url, finding)
        code = f'<a href="{html.escape(url)}">{finding.code}</a>' if url else finding.code
        trace = f" ({formatted(verdict_text(finding.verdict))})" if finding.verdict is not None else ""
        text = f"{escaped(marker(finding))}{formatted(finding.message)}{trace}"
        return f"| {_place(finding)} | {_SIGNS[finding.severity]} | {code} {escaped(finding.name)} | {text} |\n"


def _place(finding: Finding) -> str:
    return escaped(f"{repository_path(finding.place)}:{finding.span.line}")


def _details(finding: Finding) -> str:
    notes = {
        "why": finding.why,
        "help": finding.help,
        "fix": finding.fix and f"{finding.fix.message} ({finding.fix.safety.value})",
        "cost": finding.cost,
    }
    lines = [f"  - {label}: {formatted(text)}\n" for label, text in notes.items() if text]
    return "".join([f"- **{_place(finding)}** {finding.code}\n", *lines])


def _problems(problems: list[Problem], room: int) -> str:
    """The list of what was not checked, as far as there is room."""
    if not problems:
        return ""
    lines = list(map(_problem, problems))
    shown = _fitting(lines, room)
    left = len(lines) - shown
    note = f"- {left} more; {_ALL}\n" if left else ""
    return f"\n**Not checked**\n\n{''.join(lines[:shown])}{note}"


def _problem(problem: Problem) -> str:
    place = f"{repository_path(problem.place)}: " if problem.path else ""
    return f"- {escaped(place)}{formatted('; '.join(problem_sentences(problem)))}\n"


def _fitting(texts: Iterable[str], room: int) -> int:
    """The number of the first texts that fit into some bytes."""
    sizes = accumulate(len(text.encode()) for text in texts)
    return sum(1 for _ in takewhile(room.__ge__, sizes))


def formatted(text: str) -> str:
    """A text in which only what stands in backticks is formatted, as code."""
    parts = _CODE.split(printable(text))
    return "".join(_code(part) if at % 2 else escaped(part) for at, part in enumerate(parts))


def _code(text: str) -> str:
    """A text without backticks as code. A bar would end a cell of the table."""
    return f"<code>{escaped(text)}</code>" if "|" in text else f"`{text}`"


def escaped(text: str) -> str:
    """A text that Markdown and HTML show as it is, also in a table."""
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", _LINK.sub(_BREAK, printable(text)))


WRITER = MarkdownWriter

"""The JSON of reviewdog (Reviewdog Diagnostic Format)."""

from __future__ import annotations

import json
from typing import Any

from perflint.findings import WRITABLE, Finding, Report, Severity, Span
from perflint.output.plain import problem_sentences, repository_path, sentences
from perflint.output.terminal import printable
from perflint.output.writer import DocumentWriter, Output, rule_url
from perflint.source.text import Source

_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}


class RdjsonWriter(DocumentWriter):
    """One document; columns count in bytes of UTF-8, as the format wants."""

    knows_cells = False

    def __init__(self, to: Output) -> None:
        super().__init__(to)
        self._diagnostics: list[dict[str, Any]] = []

    def file(self, source: Source, report: Report) -> None:
        for finding in report.findings:
            self._diagnostics.append(
                {
                    "message": "\n".join(sentences(finding)),
                    "location": {
                        "path": printable(repository_path(finding.path)),
                        "range": _range(finding.span, source),
                    },
                    "severity": _SEVERITIES[finding.severity],
                    "code": _code(finding, rule_url(self.to.rule_url, finding)),
                    **_suggestions(finding, source),
                }
            )

    def document(self, report: Report) -> str:
        for problem in report.problems:
            location: dict[str, Any] = {"path": printable(repository_path(problem.path))} if problem.path else {}
            if problem.line is not None:
                location["range"] = {"start": {"line": problem.line}}
            text = "\n".join(problem_sentences(problem))
            self._diagnostics.append({"message": text, "location": location, "severity": "ERROR"})
        values = {"source": {"name": "perflint"}, "severity": "WARNING", "diagnostics": self._diagnostics}
        return json.dumps(values, indent=2) + "\n"


def _code(finding: Finding, url: str | None) -> dict[str, str]:
    return {"value": finding.code, **({"url": url} if url else {})}


def _suggestions(finding: Finding, source: Source) -> dict[str, Any]:
    """The fix, if one replacement is all of it: reviewdog applies suggestions one by one."""
    fix = finding.fix
    if fix is None or fix.safety not in WRITABLE or fix.imports or len(fix.edits) != 1:
        return {}
    edit = fix.edits[0]
    return {"suggestions": [{"range": _range(edit.span, source), "text": edit.text}]}


def _range(span: Span, source: Source) -> dict[str, Any]:
    return {
        "start": {"line": span.line, "column": _bytes(source, span.line, span.column)},
        "end": {"line": span.end_line, "column": _bytes(source, span.end_line, span.end_column)},
    }


def _bytes(source: Source, line: int, column: int) -> int:
    """A column in bytes of UTF-8, from 1."""
    text = source.lines[line - 1] if line <= len(source.lines) else ""
    return column if text.isascii() else len(text[: column - 1].encode("utf-8", "replace")) + 1


WRITER = RdjsonWriter

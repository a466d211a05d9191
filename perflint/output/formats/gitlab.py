"""A Code Quality report of GitLab."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from perflint.engine.fingerprints import Fingerprints
from perflint.findings import Report, Severity
from perflint.output.plain import problem_sentences, repository_path, sentences
from perflint.output.terminal import printable
from perflint.output.writer import DocumentWriter, Output
from perflint.source.text import Source

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


class GitLabWriter(DocumentWriter):
    """A list of issues, each with a fingerprint that stays the same if its line moves."""

    knows_cells = False

    def __init__(self, to: Output) -> None:
        super().__init__(to)
        self._issues: list[dict[str, Any]] = []
        self._fingerprints = Fingerprints()

    def file(self, source: Source, report: Report) -> None:
        for finding in report.findings:
            span = finding.span
            path = printable(repository_path(finding.path))
            self._issues.append(
                {
                    "description": f"{finding.code}: {'; '.join(sentences(finding))}",
                    "check_name": finding.name,
                    "fingerprint": _digest(path, self._fingerprints.of(finding, source)),
                    "severity": _SEVERITIES[finding.severity],
                    "location": {
                        "path": path,
                        "positions": {
                            "begin": {"line": span.line, "column": span.column},
                            "end": {"line": span.end_line, "column": span.end_column},
                        },
                    },
                }
            )

    def document(self, report: Report) -> str:
        for problem in report.problems:
            path = printable(repository_path(problem.path)) if problem.path else "."
            line = problem.line or 1
            self._issues.append(
                {
                    "description": "; ".join(problem_sentences(problem)),
                    "check_name": "perflint-error",
                    "fingerprint": _digest(path, problem.message, str(line)),
                    "severity": "critical",
                    "location": {"path": path, "lines": {"begin": line}},
                }
            )
        return json.dumps(self._issues, indent=2) + "\n"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:40]


WRITER = GitLabWriter

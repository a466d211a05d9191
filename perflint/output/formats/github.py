"""Annotations of GitHub Actions: workflow commands in the log of a job."""

from __future__ import annotations

from perflint.findings import Report, Severity
from perflint.output.plain import problem_sentences, repository_path, sentences
from perflint.output.terminal import printable
from perflint.output.writer import MachineWriter
from perflint.source.text import Source

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


class GitHubWriter(MachineWriter):
    """`::warning title=…,file=…,line=…,col=…::message`."""

    knows_cells = False

    def file(self, source: Source, report: Report) -> None:
        for finding in report.findings:
            span = finding.span
            place = {"line": span.line, "endLine": span.end_line, "col": span.column}
            if span.line == span.end_line:
                # GitHub shows no columns of several lines.
                place["endColumn"] = span.end_column
            title = f"{finding.code} ({finding.name})"
            self._command(_LEVELS[finding.severity], title, finding.path, place, sentences(finding))

    def body(self, report: Report) -> None:
        for problem in report.problems:
            place = {"line": problem.line, "col": problem.column}
            given = {name: value for name, value in place.items() if value is not None}
            self._command("error", "perflint", problem.path, given, problem_sentences(problem))

    def _command(self, level: str, title: str, path: str, place: dict[str, int], lines: list[str]) -> None:
        properties = {"title": title, **({"file": printable(repository_path(path))} if path else {}), **place}
        listed = ",".join(f"{name}={str(value).translate(_PROPERTY)}" for name, value in properties.items())
        text = "\n".join(lines).translate(_DATA)
        self.out.write(f"::{level} {listed}::{text}\n")


WRITER = GitHubWriter

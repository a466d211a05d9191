"""Logging commands of Azure Pipelines."""

from __future__ import annotations

from perflint.findings import Report, Severity
from perflint.output.plain import problem_sentences, repository_path, sentences
from perflint.output.terminal import printable
from perflint.output.writer import MachineWriter
from perflint.source.text import Source

_DATA = str.maketrans({"%": "%AZP25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({";": "%3B", "]": "%5D"})


class AzureWriter(MachineWriter):
    """`##vso[task.logissue type=warning;sourcepath=…;linenumber=…;columnnumber=…;code=…;]message`.

    Azure knows errors and warnings only.
    """

    knows_cells = False

    def file(self, source: Source, report: Report) -> None:
        for finding in report.findings:
            kind = "error" if finding.severity is Severity.ERROR else "warning"
            span = finding.span
            self._command(kind, finding.path, span.line, span.column, finding.code, sentences(finding))

    def body(self, report: Report) -> None:
        for problem in report.problems:
            lines = problem_sentences(problem)
            self._command("error", problem.path, problem.line, problem.column, None, lines)

    def _command(
        self, kind: str, path: str, line: int | None, column: int | None, code: str | None, lines: list[str]
    ) -> None:
        properties = {
            "type": kind,
            "sourcepath": printable(repository_path(path)) if path else None,
            "linenumber": line,
            "columnnumber": column,
            "code": code,
        }
        listed = "".join(
            f"{name}={str(value).translate(_PROPERTY)};" for name, value in properties.items() if value is not None
        )
        text = "\n".join(lines).translate(_DATA)
        self.out.write(f"##vso[task.logissue {listed}]{text}\n")


WRITER = AzureWriter

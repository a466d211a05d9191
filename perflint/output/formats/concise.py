"""One line for each finding."""

from __future__ import annotations

from perflint.findings import Report
from perflint.output.summary import verdict_text
from perflint.output.terminal import printable, printable_path
from perflint.output.writer import Writer, marker, rule_url
from perflint.source.text import Source


class ConciseWriter(Writer):
    """`path:line:column: CODE [*] message`, and the verdict of a trace in parentheses.

    The summary goes to standard error: editors take each line of standard output for a finding.
    """

    def file(self, source: Source, report: Report) -> None:
        style = self.style
        for finding in report.findings:
            place = f"{style(printable_path(finding.place), 'bold')}:{finding.span.line}:{finding.span.column}:"
            code = style.link(style(finding.code, "bold", "red"), rule_url(self.to.rule_url, finding))
            trace = f" ({printable(verdict_text(finding.verdict))})" if finding.verdict is not None else ""
            self.out.write(f"{place} {code} {style(marker(finding), 'green')}{printable(finding.message)}{trace}\n")

    def finish(self, report: Report) -> None:
        self.note_summary(report)


WRITER = ConciseWriter

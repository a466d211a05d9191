"""Findings by file, one line for each."""

from __future__ import annotations

from perflint.findings import Report
from perflint.output.summary import verdict_text
from perflint.output.terminal import columns, printable, printable_path, wrapped
from perflint.output.writer import Writer, marker, rule_url
from perflint.source.text import Source


class GroupedWriter(Writer):
    """The path, and below it `line:column CODE [*] message`."""

    def file(self, source: Source, report: Report) -> None:
        if not report.findings:
            return
        style, wide = self.style, columns(self.out)
        places = [f"{finding.span.line}:{finding.span.column}" for finding in report.findings]
        room = max(map(len, places))
        self.out.write(f"{style(printable_path(report.findings[0].place), 'bold')}:\n")
        for place, finding in zip(places, report.findings, strict=True):
            trace = f" ({verdict_text(finding.verdict)})" if finding.verdict is not None else ""
            before = room + len(finding.code) + len(marker(finding)) + 4
            lines = wrapped(printable(finding.message + trace), wide, before, room + 4)
            code = style.link(style(finding.code, "bold", "red"), rule_url(self.to.rule_url, finding))
            self.out.write(f"  {place:{room}} {code} {style(marker(finding), 'green')}{lines[0]}\n")
            self.out.writelines(f"{line}\n" for line in lines[1:])
        self.out.write("\n")

    def finish(self, report: Report) -> None:
        self.summarize(report)


WRITER = GroupedWriter

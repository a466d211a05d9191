"""Findings with their source line, a caret, the help and what fix there is."""

from __future__ import annotations

from perflint.findings import Finding, Report, Safety, Severity
from perflint.output.summary import summary_text, verdict_text
from perflint.output.terminal import printable, width
from perflint.output.writer import Writer, marker
from perflint.source.text import Source

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_WIDEST_LINE = 200
_HOW_TO_FIX = {
    Safety.SAFE: "safe",
    Safety.UNSAFE: "unsafe, needs `--unsafe-fixes`",
    Safety.RISKY: "risky, needs `--risky-fixes`",
    Safety.DISPLAY: "by hand",
}


class FullWriter(Writer):
    """Some lines for each finding."""

    def file(self, source: Source, report: Report) -> None:
        for finding in report.findings:
            self.out.write(self._text(finding, source))

    def finish(self, report: Report) -> None:
        self.out.write(summary_text(report, self.style))

    def _text(self, finding: Finding, source: Source) -> str:
        style, span = self.style, finding.span
        head = style(f"{finding.severity.value}[{finding.code}]", "bold", _COLOURS[finding.severity])
        number = str(span.line)
        gutter = " " * len(number)
        bar = style("|", "bold", "blue")
        code, caret = self._excerpt(finding, source)
        place = printable(finding.path)
        lines = [
            f"{head} {style(marker(finding), 'green')}{style(printable(finding.message), 'bold')}",
            f"{gutter}{style('-->', 'bold', 'blue')} {place}:{span.line}:{span.column}",
            f"{gutter} {bar}",
            f"{style(number, 'bold', 'blue')} {bar} {code}".rstrip(),
            f"{gutter} {bar} {caret}",
            *(f"{gutter} {style('=', 'bold', 'blue')} {note}" for note in self._notes(finding)),
        ]
        return "\n".join(lines) + "\n\n"

    def _notes(self, finding: Finding) -> list[str]:
        style = self.style
        notes = []
        if finding.verdict is not None:
            notes.append(f"{style('trace', 'bold')}: {printable(verdict_text(finding.verdict))}")
        if finding.help:
            notes.append(f"{style('help', 'bold')}: {printable(finding.help)}")
        if finding.fix:
            how = _HOW_TO_FIX[finding.fix.safety]
            notes.append(f"{style('fix', 'bold')} ({how}): {printable(finding.fix.message)}")
        return notes

    def _excerpt(self, finding: Finding, source: Source) -> tuple[str, str]:
        """The first line of a finding and the carets below it, as a terminal shows them."""
        span = finding.span
        line = source.lines[span.line - 1].rstrip("\r\n") if span.line <= len(source.lines) else ""
        start = span.column - 1
        end = span.end_column - 1 if span.end_line == span.line else len(line)
        before, marked, after = _clip(line[:start], line[start:end], line[end:])
        before, marked, after = _visible(before), _visible(marked), _visible(after)
        more = "..." if span.end_line > span.line else ""
        carets = self.style("^" * max(width(marked), 1) + more, "bold", _COLOURS[finding.severity])
        return before + marked + after, f"{' ' * width(before)}{carets} {finding.name}"


def _clip(before: str, marked: str, after: str) -> tuple[str, str, str]:
    """A window around the marked part of a long line."""
    if len(before) + len(marked) + len(after) <= _WIDEST_LINE:
        return before, marked, after
    if len(before) > _WIDEST_LINE // 2:
        before = "..." + before[len(before) - _WIDEST_LINE // 4 :]
    left = max(_WIDEST_LINE - len(before), _WIDEST_LINE // 4)
    if len(marked) > left:
        return before, marked[:left], "..."
    left -= len(marked)
    return before, marked, after if len(after) <= left else after[:left] + "..."


def _visible(text: str) -> str:
    return printable(text.replace("\t", "    ").replace("\f", ""))

"""Findings with their source lines and carets, the reason, the help, the cost and the fix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from perflint.findings import Finding, Report, Safety, Severity
from perflint.output.costliest import costliest_text
from perflint.output.excerpt import Excerpt
from perflint.output.summary import count, verdict_text
from perflint.output.terminal import columns, printable, wrapped
from perflint.output.writer import Output, Writer, marker, rule_url
from perflint.source.text import Source

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_HOW_TO_FIX = {
    Safety.SAFE: "safe",
    Safety.UNSAFE: "unsafe, needs `--unsafe-fixes`",
    Safety.RISKY: "risky, needs `--risky-fixes`",
    Safety.DISPLAY: "by hand",
}


class FullWriter(Writer):
    """The costliest functions, and a block of lines for each finding, or for those of one group in one file."""

    writes_last = True

    def __init__(self, to: Output) -> None:
        super().__init__(to)
        self._columns = columns(to.out)
        self._blocks: list[str] = []
        self._said: dict[tuple[str, ...], int] = {}
        """The lines of the findings at which help and costs were written, by file and rule: each is written once."""

    def file(self, source: Source, report: Report) -> None:
        for block in _blocks(report.findings):
            self._blocks.append(self._text(block, source))

    def finish(self, report: Report) -> None:
        if not self.to.quiet:
            self.out.write(costliest_text(report.findings, self.style, self._columns))
        self.out.writelines(self._blocks)
        self.summarize(report, begin=False)

    def _text(self, block: Sequence[Finding], source: Source) -> str:
        first = block[0]
        excerpt = Excerpt(source, [finding.span for finding in block])
        gutter = " " * excerpt.gutter
        place = f"{printable(first.place)}:{first.span.line}:{first.span.column}"
        lines = [
            *self._head(first, len(block)),
            f"{gutter}{self.style('-->', 'bold', 'blue')} {place}",
            *excerpt.lines(self.style, _COLOURS[first.severity], first.name),
        ]
        if excerpt.left_out:
            noun = "line" if len(excerpt.left_out) == 1 else "lines"
            lines.append(f"{gutter} {self.style('=', 'bold', 'blue')} also on {noun} {_listed(excerpt.left_out)}")
        for label, text in self._notes(block):
            lines += self._note(gutter, label, text)
        return "\n".join(lines) + "\n\n"

    def _head(self, finding: Finding, places: int) -> list[str]:
        style, severity = self.style, f"{finding.severity.value}[{finding.code}]"
        more = f" ({count(places, 'place')})" if places > 1 else ""
        before = f"{severity} {marker(finding)}"
        text = wrapped(printable(finding.message) + more, self._columns, len(before), 2)
        code = style.link(style(severity, "bold", _COLOURS[finding.severity]), rule_url(self.to.rule_url, finding))
        start = f"{code} {style(marker(finding), 'green')}"
        return [f"{start}{style(text[0], 'bold')}", *(style(line, "bold") for line in text[1:])]

    def _note(self, gutter: str, label: str, text: str) -> list[str]:
        before = f"{gutter} = {label}: "
        lines = wrapped(printable(text), self._columns, len(before), len(gutter) + 5)
        word, _, rest = label.partition(" ")
        shown = self.style(word, "bold") + (f" {rest}" if rest else "")
        return [f"{gutter} {self.style('=', 'bold', 'blue')} {shown}: {lines[0]}", *lines[1:]]

    def _notes(self, block: Sequence[Finding]) -> Iterator[tuple[str, str]]:
        first = block[0]
        if first.verdict is not None:
            yield "trace", verdict_text(first.verdict)
        if first.why:
            yield "why", first.why
        yield from self._once(first, "help", first.help)
        if first.fix:
            yield f"fix ({_HOW_TO_FIX[first.fix.safety]})", first.fix.message
        yield from self._once(first, "cost", first.cost)

    def _once(self, finding: Finding, label: str, text: str | None) -> Iterator[tuple[str, str]]:
        """The text; where it was written for the rule and file before, only its place."""
        if not text:
            return
        line = self._said.setdefault((finding.path, finding.code, label, text), finding.span.line)
        is_first = line == finding.span.line
        yield label, text if is_first else f"as for line {line}"


def _blocks(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings that are shown as one: those of a group that say the same about help, fix and severity."""
    blocks: dict[object, list[Finding]] = {}
    for index, finding in enumerate(findings):
        alike = (finding.help, marker(finding), finding.fix and finding.fix.message, finding.severity, finding.verdict)
        key = index if finding.group is None else (finding.group, *alike)
        blocks.setdefault(key, []).append(finding)
    return list(blocks.values())


def _listed(lines: Sequence[int]) -> str:
    """Numbers of lines: "31, 35 and 40"."""
    *most, last = (str(line) for line in lines)
    return f"{', '.join(most)} and {last}" if most else last


WRITER = FullWriter

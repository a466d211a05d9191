"""The interface of all writers, and the texts that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, TextIO

from perflint.config.settings import Settings
from perflint.findings import Finding, Problem, Report
from perflint.frozen import dataclass, field
from perflint.output.costliest import costliest_text
from perflint.output.summary import MARKERS, summary_text
from perflint.output.terminal import Style, columns, printable
from perflint.source.text import Source


@dataclass(frozen=True, slots=True)
class Output:
    """The streams that a run writes to, and their styles."""

    out: TextIO
    style: Style
    notes: TextIO | None = None
    """The stream for a summary that programs should not read as findings; None for `out`."""
    note_style: Style | None = None
    statistics: bool = False
    """True to count the findings of each rule in place of writing them."""
    quiet: bool = False
    """True to leave the summary out."""
    rule_url: str | None = None
    """The address of the pages of rules, with `{name}` or `{code}`."""
    settings: Settings = field(default_factory=Settings)
    """The settings of the run, which name its rules."""


class Writer(ABC):
    """Writes findings file by file, and a summary at the end."""

    is_for_programs: ClassVar[bool] = False
    """True if a program reads the format, so that nothing else may stand in it."""
    counts: ClassVar[bool] = False
    """True if the format has a form of its own for statistics."""
    writes_last: ClassVar[bool] = False
    """True if nothing is written before the last file is checked."""
    knows_cells: ClassVar[bool] = True
    """True if the format has a place for the cell of a notebook; if not, lines are those of the document."""

    def __init__(self, to: Output) -> None:
        self.to = to
        self.out = to.out
        self.style = to.style

    @abstractmethod
    def file(self, source: Source, report: Report) -> None:
        """Write the findings of one file."""

    @abstractmethod
    def finish(self, report: Report) -> None:
        """Write what comes after the last file, with the summary of the whole run."""

    def summarize(self, report: Report, begin: bool = True) -> None:
        """Write the summary to the stream of the findings; with `begin`, the costliest functions before it."""
        if not self.to.quiet:
            self.out.write(costliest_text(report.findings, self.style, columns(self.out)) if begin else "")
            self.out.write(summary_text(report, self.style))

    def note_summary(self, report: Report, begin: bool = True) -> None:
        """Write the summary beside the findings, to standard error."""
        if not self.to.quiet:
            # The order of the two streams matters where both go to one terminal.
            self.out.flush()
            notes, style = self.to.notes or self.out, self.to.note_style or self.style
            notes.write(costliest_text(report.findings, style, columns(notes)) if begin else "")
            notes.write(summary_text(report, style))


class MachineWriter(Writer):
    """Writes what a program reads; the summary for people goes to standard error, if that is another stream."""

    is_for_programs = True

    def finish(self, report: Report) -> None:
        self.body(report)
        if self.to.notes is not None:
            self.note_summary(report, begin=False)

    @abstractmethod
    def body(self, report: Report) -> None:
        """Write what comes after the findings of the last file."""


class DocumentWriter(MachineWriter):
    """Writes one document at the end of a run."""

    def file(self, source: Source, report: Report) -> None:
        """Nothing: the document is written as one."""

    def body(self, report: Report) -> None:
        self.out.write(self.document(report))

    @abstractmethod
    def document(self, report: Report) -> str:
        """The document of the whole run."""


def marker(finding: Finding) -> str:
    """The marker of a finding's fix and a space; empty without a fix that can be written."""
    found = MARKERS.get(finding.fix.safety) if finding.fix else None
    return f"{found} " if found else ""


def rule_url(template: str | None, finding: Finding) -> str | None:
    """The address of the page of a finding's rule, if the pages have an address."""
    return template and template.replace("{name}", finding.name).replace("{code}", finding.code)


def problem_text(problem: Problem, style: Style) -> str:
    """The text of a problem, for standard error."""
    place = printable(problem.place)
    if problem.line is not None:
        place += f":{problem.line}" + (f":{problem.column}" if problem.column is not None else "")
    return message_text("error", f"{place}: {problem.message}" if place else problem.message, problem.help, style)


def message_text(kind: str, message: str, help: str | None, style: Style) -> str:
    """An "error" or "warning" and its help line, for standard error."""
    colour = "red" if kind == "error" else "yellow"
    text = f"{style(f'{kind}:', 'bold', colour)} {printable(message)}\n"
    return f"{text}  {style('help:', 'bold')} {printable(help)}\n" if help else text

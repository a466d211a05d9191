"""The interface of all writers, and the texts that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TextIO

from perflint.findings import Finding, Problem, Report
from perflint.output.summary import MARKERS
from perflint.output.terminal import Style, printable
from perflint.source.text import Source


class Writer(ABC):
    """Writes findings file by file, and a summary at the end."""

    def __init__(self, out: TextIO, style: Style, notes: TextIO | None = None, note_style: Style | None = None) -> None:
        self.out = out
        self.style = style
        self.notes = notes or out
        """The stream for a summary that programs should not read as findings."""
        self.note_style = note_style or style

    @abstractmethod
    def file(self, source: Source, report: Report) -> None:
        """Write the findings of one file."""

    @abstractmethod
    def finish(self, report: Report) -> None:
        """Write the summary of the whole run."""


def marker(finding: Finding) -> str:
    """The marker of a finding's fix and a space; empty without a fix that can be written."""
    found = MARKERS.get(finding.fix.safety) if finding.fix else None
    return f"{found} " if found else ""


def problem_text(problem: Problem, style: Style) -> str:
    """The text of a problem, for standard error."""
    place = printable(problem.path)
    if problem.line is not None:
        place += f":{problem.line}" + (f":{problem.column}" if problem.column is not None else "")
    return message_text("error", f"{place}: {problem.message}" if place else problem.message, problem.help, style)


def message_text(kind: str, message: str, help: str | None, style: Style) -> str:
    """An "error" or "warning" and its help line, for standard error."""
    colour = "red" if kind == "error" else "yellow"
    text = f"{style(f'{kind}:', 'bold', colour)} {printable(message)}\n"
    return f"{text}  {style('help:', 'bold')} {printable(help)}\n" if help else text

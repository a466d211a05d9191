"""Findings of notebooks at the places that their readers know: cells for people, lines of the document for programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar

from perflint.findings import Edit, Finding, Problem, Report, Span, place_of
from perflint.frozen import replace
from perflint.source.notebooks import Notebook
from perflint.source.text import Source

_Placed = TypeVar("_Placed", Finding, Edit)
_LINES = re.compile(r"(?:\bcell \d+, |\bon )?\blines? \d+(?:(?:, | and )\d+)*\b(?! of )")
"""Numbers of lines in a message; `line 3 of module` is a line of another file."""


def placed(source: Source, report: Report, knows_cells: bool) -> Iterator[tuple[Source, Report]]:
    """The report of a file for a format that has a place for cells, or none."""
    if knows_cells:
        yield from by_cell(source, report)
    else:
        yield by_line(source, report)


def from_cells(report: Report, notebook: Notebook) -> Report:
    """A report of cells, as it is for the text of the notebook. Only `by_cell` and `by_line` take it."""

    def moved(finding: Finding) -> Finding:
        fix = finding.fix and replace(
            finding.fix, edits=tuple(_from_cell(edit, notebook) for edit in finding.fix.edits)
        )
        return replace(_from_cell(finding, notebook), fix=fix)

    silenced = [replace(each, finding=moved(each.finding)) for each in report.silenced]
    return replace(report, findings=[moved(finding) for finding in report.findings], silenced=silenced)


def _from_cell(place: _Placed, notebook: Notebook) -> _Placed:
    if place.cell is None:
        return place
    span, line = place.span, notebook.line(place.cell, place.span.line)
    return replace(place, span=Span(line, span.column, line + span.end_line - span.line, span.end_column), cell=None)


def by_cell(source: Source, report: Report) -> Iterator[tuple[Source, Report]]:
    """The report of a file; of a notebook one for each cell with findings, whose lines count within the cell.

    The first one also has all else that the report says.
    """
    notebook = source.notebook
    if notebook is None:
        yield source, report
        return
    cells: dict[int, list[Finding]] = {}
    for finding in report.findings:
        cells.setdefault(notebook.place(finding.span.line)[0], []).append(finding)
    report.problems = [problem_in_cell(problem, notebook) for problem in report.problems]
    report.findings = []
    report.silenced = [replace(each, finding=_in_cell(each.finding, notebook)) for each in report.silenced]
    parts = [Report(findings=[_in_cell(finding, notebook) for finding in found]) for found in cells.values()]
    if parts:
        report.findings, parts[0] = parts[0].findings, report
    else:
        cells, parts = {0: []}, [report]
    for index, part in zip(cells, parts, strict=True):
        code = notebook.cells[index].source if notebook.cells else ""
        yield Source(source.path, code), part


def by_line(source: Source, report: Report) -> tuple[Source, Report]:
    """The report of a file; of a notebook with the lines of its document, and without edits of the code."""
    notebook = source.notebook
    if notebook is None:
        return source, report
    document = Source(source.path, notebook.document)
    report.findings = [_in_document(finding, notebook, document) for finding in report.findings]
    report.silenced = [
        replace(silenced, finding=_in_document(silenced.finding, notebook, document)) for silenced in report.silenced
    ]
    report.problems = [_problem_in_document(problem, notebook) for problem in report.problems]
    return document, report


def place_in_cell(path: str, span: Span, notebook: Notebook | None) -> str:
    """The place at which a span starts, as people read it."""
    number = None
    if notebook is not None:
        span, number = _span(span, notebook)
    return f"{place_of(path, number)}:{span.line}:{span.column}"


def problem_in_cell(problem: Problem, notebook: Notebook | None) -> Problem:
    """A problem of a file, with the cell of a notebook."""
    if notebook is None or problem.line is None or not notebook.cells:
        return problem
    index, line = notebook.place(problem.line)
    return replace(problem, line=line, cell=notebook.cells[index].number)


def _in_cell(finding: Finding, notebook: Notebook) -> Finding:
    fix = finding.fix and replace(finding.fix, edits=tuple(_edit(edit, notebook) for edit in finding.fix.edits))
    span, number = _span(finding.span, notebook)
    return replace(
        finding,
        span=span,
        cell=number,
        fix=fix,
        message=in_words(finding.message, notebook),
        why=finding.why and in_words(finding.why, notebook),
        help=finding.help and in_words(finding.help, notebook),
    )


def _edit(edit: Edit, notebook: Notebook) -> Edit:
    span, number = _span(edit.span, notebook)
    return replace(edit, span=span, cell=number)


def in_words(text: str, notebook: Notebook) -> str:
    """A text whose numbers of lines name cells; code in backticks stays as it is."""
    parts = text.split("`")
    for at in range(0, len(parts), 2):
        parts[at] = _LINES.sub(lambda found: _cells_of(found, notebook), parts[at])
    return "`".join(parts)


def _cells_of(found: re.Match[str], notebook: Notebook) -> str:
    """The cells and lines that stand for numbers of lines such as `line 3`, `on line 3` and `lines 3 and 5`."""
    if found[0].startswith("cell"):
        # It names a cell already.
        return found[0]
    places = [notebook.place(int(number)) for number in re.findall(r"\d+", found[0])]
    start = "in " if found[0].startswith("on ") else ""
    return start + " and ".join(f"cell {notebook.cells[index].number}, line {line}" for index, line in places)


def _span(span: Span, notebook: Notebook) -> tuple[Span, int]:
    """A span with lines of the cell that it starts in, and the number of the cell."""
    index, line = notebook.place(span.line)
    return Span(line, span.column, line + span.end_line - span.line, span.end_column), notebook.cells[index].number


def _in_document(finding: Finding, notebook: Notebook, document: Source) -> Finding:
    index, line = notebook.place(finding.span.line)
    place = notebook.document_line(finding.span.line)
    whole = Span(place, 1, place, len(document.lines[place - 1].rstrip("\r\n")) + 1)
    finding = _in_cell(finding, notebook)
    message = f"cell {notebook.cells[index].number}, line {line}: {finding.message}"
    return replace(finding, span=whole, cell=None, message=message, fix=None)


def _problem_in_document(problem: Problem, notebook: Notebook) -> Problem:
    if problem.line is None or not notebook.cells:
        return problem
    index, line = notebook.place(problem.line)
    message = f"cell {notebook.cells[index].number}, line {line}: {problem.message}"
    return replace(problem, line=notebook.document_line(problem.line), column=None, message=message)

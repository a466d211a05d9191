"""Open notebooks: the code of their cells as one text, and the answers for the editor by cell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from lsprotocol.types import (
    Diagnostic,
    Hover,
    InlayHint,
    MarkupContent,
    OptionalVersionedTextDocumentIdentifier,
    Position,
    Range,
    TextDocumentEdit,
    TextEdit,
    WorkspaceEdit,
)

from perflint.findings import Finding, Report
from perflint.frozen import dataclass
from perflint.integrations.lsp.diagnostics import diagnostic
from perflint.integrations.lsp.positions import Positions
from perflint.integrations.lsp.session import Checked
from perflint.output.notebooks import by_cell, in_words
from perflint.source.notebooks import Notebook
from perflint.source.text import Source


@dataclass(frozen=True, slots=True)
class OpenCell:
    """A cell of an open notebook."""

    uri: str
    version: int | None
    text: str
    is_code: bool


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of an open notebook at one version. Its code as one text is that of `notebook`."""

    notebook: Notebook
    by_number: Mapping[int, OpenCell]
    """All cells by their places, from 1."""

    @property
    def uris(self) -> list[str]:
        """The cells with code."""
        return [cell.uri for cell in self.by_number.values() if cell.is_code]

    def number(self, uri: str) -> int:
        """The number of a cell."""
        return next(number for number, cell in self.by_number.items() if cell.uri == uri)


def cells_of(cells: Iterable[OpenCell]) -> Cells:
    """The cells of a notebook."""
    listed = list(cells)
    document = [{"cell_type": "code" if each.is_code else "markdown", "source": each.text} for each in listed]
    text = json.dumps({"cells": document, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    return Cells(Notebook(text), dict(enumerate(listed, 1)))


def diagnostics_by_cell(cells: Cells, checked: Checked, encoding: str) -> dict[str, list[Diagnostic]]:
    """The diagnostics of each cell with code."""
    found: dict[str, list[Diagnostic]] = {uri: [] for uri in cells.uris}
    for _, finding, positions, uri in findings_by_cell(cells, checked, encoding):
        found[uri].append(diagnostic(finding, positions, checked.settings.rule_url))
    return found


def findings_by_cell(cells: Cells, checked: Checked, encoding: str) -> Iterator[tuple[int, Finding, Positions, str]]:
    """Each finding with its index, at its place in a cell, the positions of the cell, and the cell."""
    source = Source(checked.source.path, checked.source.text, notebook=cells.notebook)
    for index, finding in enumerate(checked.findings):
        for _, part in by_cell(source, Report(findings=[finding])):
            for placed in part.findings:
                cell = cells.by_number[placed.cell or 1]
                yield index, placed, Positions(Source(source.path, cell.text), encoding), cell.uri


def place_in_text(cells: Cells, uri: str, position: Position, encoding: str) -> tuple[int, int]:
    """The line and column of the whole text for a position in a cell."""
    number = cells.number(uri)
    line, column = Positions(Source("", cells.by_number[number].text), encoding).place(position)
    return cells.notebook.line(number, line), column


def hover_in_cell(cells: Cells, uri: str, found: Hover | None) -> Hover | None:
    """A hover over the whole text as one over a cell."""
    if found is None or found.range is None or not isinstance(found.contents, MarkupContent):
        return found
    before = cells.notebook.line(cells.number(uri), 1) - 1
    start, end = found.range.start, found.range.end
    where = Range(Position(start.line - before, start.character), Position(end.line - before, end.character))
    contents = MarkupContent(found.contents.kind, in_words(found.contents.value, cells.notebook))
    return Hover(contents, where)


def lines_of_cell(cells: Cells, uri: str) -> tuple[int, int]:
    """The first line of a cell in the whole text and the line after its last one, from 0."""
    number = cells.number(uri)
    first = cells.notebook.line(number, 1) - 1
    return first, first + cells.by_number[number].text.count("\n") + 1


def hints_in_cell(cells: Cells, uri: str, found: Iterable[InlayHint]) -> Iterator[InlayHint]:
    """The hints of the whole text that are in a cell, as those of the cell."""
    first, end = lines_of_cell(cells, uri)
    for hint in found:
        if first <= hint.position.line < end:
            hint.position = Position(hint.position.line - first, hint.position.character)
            yield hint


def edit_of_cells(cells: Cells, text: str, encoding: str, versioned: bool) -> WorkspaceEdit:
    """The edit that gives the whole text another one. Raises NotebookError if cells cannot hold it."""
    after = Notebook(cells.notebook.written(text))
    edits: dict[str, list[TextEdit]] = {}
    for cell in after.cells:
        known = cells.by_number[cell.number]
        if known.text != cell.source:
            edits[known.uri] = Positions(Source("", known.text), encoding).edits(cell.source)
    if not versioned:
        return WorkspaceEdit(changes=edits)
    versions = {cell.uri: cell.version or 0 for cell in cells.by_number.values()}
    changes = [
        TextDocumentEdit(OptionalVersionedTextDocumentIdentifier(uri, versions[uri]), list(each))
        for uri, each in edits.items()
    ]
    return WorkspaceEdit(document_changes=list(changes))

"""Code actions: a fix, a comment that silences a finding, and all safe fixes of a document.

The list of actions needs no check. The edits of an action are made when the editor asks for them, or at once for an
editor that cannot ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lsprotocol.types import (
    CodeAction,
    CodeActionKind,
    OptionalVersionedTextDocumentIdentifier,
    Range,
    TextDocumentEdit,
    WorkspaceEdit,
)

from perflint.findings import WRITABLE, Finding, Problem, Safety
from perflint.integrations.lsp.diagnostics import diagnostic
from perflint.integrations.lsp.positions import Positions
from perflint.integrations.lsp.session import Change, Checked, Document, Session, Texts
from perflint.output.terminal import printable

FIX_ALL = "source.fixAll.perflint"
KINDS: list[CodeActionKind | str] = [CodeActionKind.QuickFix, FIX_ALL]
_MARKS = {Safety.SAFE: "", Safety.UNSAFE: " (unsafe)", Safety.RISKY: " (risky)"}
_FIX, _IGNORE, _ALL = "fix", "ignore", "all"


Shown = Iterable[tuple[int, Finding, Positions]]
"""Findings of a document with their indices, and the positions of the text in which they are shown."""


def all_shown(checked: Checked, encoding: str) -> Shown:
    """All findings of a document that is one text."""
    positions = Positions(checked.source, encoding)
    return [(index, finding, positions) for index, finding in enumerate(checked.findings)]


def actions(checked: Checked, shown: Shown, asked: Range, only: Sequence[str] | None) -> Iterator[CodeAction]:
    """The actions at a range, without their edits. `only` are the kinds that the editor wants."""
    document = checked.document
    if _wants(CodeActionKind.QuickFix, only):
        for index, finding, positions in shown:
            where = positions.range(finding.span)
            if not _touches(where, asked):
                continue
            about = [diagnostic(finding, positions, checked.settings.rule_url)]
            fix = finding.fix
            if fix is not None and fix.safety in WRITABLE:
                yield CodeAction(
                    title=f"perflint: {printable(fix.message)}{_MARKS[fix.safety]}",
                    kind=CodeActionKind.QuickFix,
                    diagnostics=about,
                    is_preferred=True if fix.safety is Safety.SAFE else None,
                    data=_data(document, _FIX, checked.findings[index]),
                )
            yield CodeAction(
                title=f"perflint: ignore {finding.code} in this line",
                kind=CodeActionKind.QuickFix,
                diagnostics=about,
                data=_data(document, _IGNORE, checked.findings[index]),
            )
    safe = any(finding.fix is not None and finding.fix.safety is Safety.SAFE for finding in checked.findings)
    if safe and _wants(FIX_ALL, only):
        yield CodeAction(title="perflint: apply all safe fixes", kind=FIX_ALL, data=_data(document, _ALL))


def change(
    session: Session, checked: Checked, data: Mapping[str, Any], texts: Texts, problems: list[Problem]
) -> Change:
    """The new text of an action."""
    if data["version"] != checked.document.version:
        return Change(None, ("the document has changed",))
    if data["does"] == _ALL:
        return session.fix_all(checked.document, texts, problems)
    # Edits of other documents, and settings, change the findings of a version.
    finding = next((each for each in checked.findings if _identity(each) == data["finding"]), None)
    if finding is None:
        return Change(None, ("the finding is no longer there",))
    if data["does"] == _FIX:
        return session.fix(checked, finding, texts, problems)
    return session.ignore(checked, finding, problems)


def workspace_edit(checked: Checked, text: str, encoding: str, versioned: bool) -> WorkspaceEdit:
    """The edit that gives a document another text. `versioned` if the editor takes edits for one version only."""
    document = checked.document
    edits = Positions(checked.source, encoding).edits(text)
    if not versioned:
        return WorkspaceEdit(changes={document.uri: edits})
    identifier = OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
    return WorkspaceEdit(document_changes=[TextDocumentEdit(identifier, list(edits))])


def _data(document: Document, does: str, finding: Finding | None = None) -> dict[str, Any]:
    known = None if finding is None else _identity(finding)
    return {"uri": document.uri, "version": document.version, "does": does, "finding": known}


def _identity(finding: Finding) -> list[Any]:
    """The parts of a finding that no other one of the same document has, as JSON."""
    span, fix = finding.span, finding.fix
    place = [span.line, span.column, span.end_line, span.end_column]
    return [finding.code, *place, *([] if fix is None else [fix.safety.value, fix.message])]


def _wants(kind: str, only: Sequence[str] | None) -> bool:
    """True if a kind, or one that it belongs to, is wanted."""
    return only is None or any(kind == each or kind.startswith(f"{each}.") or not each for each in only)


def _touches(one: Range, other: Range) -> bool:
    starts, ends = (one.start.line, one.start.character), (one.end.line, one.end.character)
    return starts <= (other.end.line, other.end.character) and (other.start.line, other.start.character) <= ends

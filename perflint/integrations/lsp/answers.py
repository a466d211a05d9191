"""The answers of the server when the editor asks: fixes, beliefs, hints and costs."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from perflint.findings import Problem
from perflint.integrations.lsp.abilities import resolves, takes_versions
from perflint.integrations.lsp.actions import KINDS, Shown, actions, all_shown, change, workspace_edit
from perflint.integrations.lsp.diagnostics import SOURCE
from perflint.integrations.lsp.hints import code_lenses, inlay_hints
from perflint.integrations.lsp.hover import hover
from perflint.integrations.lsp.notebooks import (
    edit_of_cells,
    findings_by_cell,
    hints_in_cell,
    hover_in_cell,
    lines_of_cell,
    place_in_text,
)
from perflint.integrations.lsp.positions import Positions
from perflint.integrations.lsp.server import Server
from perflint.integrations.lsp.session import Checked
from perflint.source.notebooks import NotebookError
from perflint.source.text import Source


def add_answers(server: Server) -> None:
    """Let the server answer questions for actions and hovers."""

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=KINDS, resolve_provider=True)
    )
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        checked = await server.current(params.text_document.uri)
        if checked is None:
            return []
        only = params.context.only
        uri = params.text_document.uri
        cells = server.cells.get(server.owners.get(uri, ""))
        shown: Shown = all_shown(checked, server.encoding)
        if cells is not None:
            placed = findings_by_cell(cells, checked, server.encoding)
            shown = [(index, finding, positions) for index, finding, positions, cell in placed if cell == uri]
        if not resolves(server.client_capabilities):
            # All edits are made now: those of the whole document only for an editor that wants them.
            only = [types.CodeActionKind.QuickFix] if only is None else only
            found = [await _completed(server, action) for action in actions(checked, shown, params.range, only)]
            return [action for action in found if action.edit is not None]
        return list(actions(checked, shown, params.range, only))

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        return await _completed(server, action)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def show(params: types.HoverParams) -> types.Hover | None:
        checked = await server.current(params.text_document.uri)
        if checked is None or not checked.parses:
            return None
        uri = params.text_document.uri
        cells = server.cells.get(server.owners.get(uri, ""))
        if cells is None:
            place = Positions(checked.source, server.encoding).place(params.position)
        else:
            place = place_in_text(cells, uri, params.position, server.encoding)
        problems: list[Problem] = []
        explained = await server.do(server.session.explain, checked.document, server.texts, *place, problems)
        server.tell(problems)
        found = await server.do(hover, checked, explained, place, server.encoding)
        return found if cells is None else hover_in_cell(cells, uri, found)


def add_hints(server: Server) -> None:
    """Let the server answer questions for hints and lenses."""

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        uri, asked = params.text_document.uri, params.range
        document = server.open.get(server.owners.get(uri, uri))
        if document is None or not server.session.choices.inlay_hints:
            return []
        source = Source(document.path, document.text)
        names = await server.devices(document)
        cells = server.cells.get(document.uri)
        if cells is None or uri not in server.owners:
            return list(inlay_hints(source, names, await server.costs(source), asked, server.encoding))
        # A trace is of a program, so a cell has no costs.
        first, _ = lines_of_cell(cells, uri)
        start, end = asked.start.line + first, asked.end.line + first
        wide = types.Range(types.Position(start, 0), types.Position(end, 0))
        return list(hints_in_cell(cells, uri, inlay_hints(source, names, None, wide, server.encoding)))

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        if params.text_document.uri in server.owners:
            # A trace is of a program.
            return []
        checked = await server.current(params.text_document.uri)
        if checked is None or not checked.parses or not server.session.choices.code_lens:
            return []
        return list(code_lenses(checked.source, await server.costs(checked.source), server.encoding))


async def _completed(server: Server, action: types.CodeAction) -> types.CodeAction:
    """The action with its edit; without one, and a message with the reason, if it would do harm."""
    data: Any = action.data
    checked = await server.current(data["uri"])
    if checked is None:
        return action
    problems: list[Problem] = []
    made = await server.do(change, server.session, checked, data, server.texts, problems)
    server.tell(problems)
    if made.text is not None:
        versioned = takes_versions(server.client_capabilities)
        action.edit = _edit(server, checked, made.text, versioned)
    elif made.reasons and resolves(server.client_capabilities):
        message = f"{action.title}: not done: {'; '.join(made.reasons)}"
        server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, message))
    return action


def _edit(server: Server, checked: Checked, text: str, versioned: bool) -> types.WorkspaceEdit | None:
    """The edit that gives a document another text; None, and a message, if its cells cannot hold that."""
    cells = server.cells.get(checked.document.uri)
    if cells is None:
        return workspace_edit(checked, text, server.encoding, versioned)
    try:
        return edit_of_cells(cells, text, server.encoding, versioned)
    except NotebookError as error:
        server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"{SOURCE}: {error.message}"))
        return None

"""The server: documents come in, diagnostics go out; fixes and beliefs are given when the editor asks."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from perflint import __version__
from perflint.config.errors import ConfigurationError
from perflint.engine.devices import Bound
from perflint.findings import Problem
from perflint.integrations.lsp.abilities import resolves, takes_versions, watches
from perflint.integrations.lsp.actions import KINDS, Shown, actions, all_shown, change, workspace_edit
from perflint.integrations.lsp.choices import SECTION, Choices, editor_choices
from perflint.integrations.lsp.diagnostics import SOURCE, diagnostics
from perflint.integrations.lsp.hints import code_lenses, inlay_hints
from perflint.integrations.lsp.hover import hover
from perflint.integrations.lsp.notebooks import (
    Cells,
    OpenCell,
    cells_of,
    diagnostics_by_cell,
    edit_of_cells,
    findings_by_cell,
    hints_in_cell,
    hover_in_cell,
    lines_of_cell,
    place_in_text,
)
from perflint.integrations.lsp.positions import Positions
from perflint.integrations.lsp.schedule import LONG_PAUSE, Schedule
from perflint.integrations.lsp.session import Checked, Document, Session
from perflint.output.plain import problem_sentences
from perflint.source.notebooks import NotebookError
from perflint.source.text import Source
from perflint.tracer.costs import Measured

_STACK = 64 << 20
"""Bytes for the thread that checks: Python's parser needs them for deep code, and some systems give threads little."""
_TRACES = "**/perflint-trace*.jsonl.gz"
"""The recordings whose names are those that `perflint trace` gives by default."""
_WATCHED = (
    "**/*.{py,pyi}",
    "**/{pyproject,perflint,.perflint}.toml",
    "**/{.gitignore,setup.py,requirements*.txt}",
    _TRACES,
)
_LANGUAGES = ("", "python")
_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithNotebook("jupyter-notebook")], save=True
)
_LONGEST_PAUSE = 0.3
"""Seconds between the end of a check and the next one of the document."""

_Result = TypeVar("_Result")


class Server(LanguageServer):
    """The state that the loop holds: open documents and their latest findings."""

    def __init__(self, cache: Path | None) -> None:
        # Whole texts: the library splits lines at form feeds, too, and the protocol does not.
        super().__init__(
            "perflint",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
            notebook_document_sync=_NOTEBOOKS,
            max_workers=2,
        )
        self.session = Session(cache)
        self.open: dict[str, Document] = {}
        self.checked: dict[str, Checked] = {}
        self.cells: dict[str, Cells] = {}
        """The cells of open notebooks, by the notebook."""
        self.owners: dict[str, str] = {}
        """The notebook of each cell with code."""
        self.exit_code = 1
        """0 after the editor has asked for the end in order."""
        self._again: dict[str, float] = {}
        """The time before which a document is not checked again."""
        self._told: dict[str, tuple[Problem, ...]] = {}
        """The problems of a document that are in the log."""
        self._schedule = Schedule(self._check, self._rest)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="perflint")

    @property
    def encoding(self) -> str:
        """The units of columns that the editor and the server have agreed on."""
        return self.server_capabilities.position_encoding or types.PositionEncodingKind.Utf16

    @property
    def texts(self) -> dict[str, str]:
        """The texts of all open documents by path."""
        return {document.path: document.text for document in self.open.values()}

    async def do(self, job: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run a job of the session in its thread, after the jobs before it."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, job, *arguments)

    def take(self, uri: str, version: int, text: str) -> None:
        """Take a text of a document, and check it and the documents that it may concern.

        After a check there is a pause as long as the check took, so that checks take half of the time.
        """
        path = to_fs_path(uri)
        if path is None:
            # It is not a file, such as a cell of a notebook.
            return
        self.open[uri] = Document(uri, os.path.abspath(path), version, text)
        self._schedule.ask(uri, self._again.get(uri, 0.0) - asyncio.get_running_loop().time())
        self.ask_for_others(uri)

    def take_notebook(self, uri: str, version: int, cells: Cells) -> None:
        """Take the cells of a notebook, and check them as one text."""
        self._forget_cells(uri, but=cells.uris)
        self.cells[uri] = cells
        self.owners |= dict.fromkeys(cells.uris, uri)
        self.take(uri, version, cells.notebook.text)

    def _forget_cells(self, uri: str, but: Collection[str] = ()) -> None:
        """Remove the diagnostics of cells that a notebook no longer has."""
        known = self.cells.pop(uri, None)
        for cell in known.uris if known is not None else ():
            if cell not in but:
                del self.owners[cell]
                self._publish(cell, [], None)

    def ask_for_others(self, uri: str | None = None) -> None:
        """Check the open documents but one after a longer pause."""
        for other in self.open:
            if other != uri:
                self._schedule.ask(other, LONG_PAUSE)

    async def close(self, uri: str) -> None:
        """Forget a document, and its diagnostics."""
        document = self.open.pop(uri, None)
        if document is None:
            return
        self._schedule.drop(uri)
        self.checked.pop(uri, None)
        self._told.pop(uri, None)
        self._again.pop(uri, None)
        if uri in self.cells:
            self._forget_cells(uri)
        else:
            self._publish(uri, [], None)
        self.ask_for_others()
        await self.do(self.session.close_document, document.path)

    async def current(self, uri: str) -> Checked | None:
        """The final findings of the present text of a document, or of the notebook of a cell; None if not open."""
        uri = self.owners.get(uri, uri)
        while uri in self.open:
            known = self.checked.get(uri)
            if known is not None and known.document is self.open[uri] and known.is_final:
                return known
            self._schedule.drop(uri)
            await self._check(uri)
        return None

    async def configure(self, sent: object) -> None:
        """Take the settings of the editor, which stay as they are if they are wrong."""
        try:
            choices = editor_choices(sent)
        except ConfigurationError as error:
            self.tell([Problem("", error.message, error.help)])
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"{SOURCE}: {error.message}"))
            choices = Choices()
        await self.do(self.session.configure, choices)
        self.refresh_hints()
        self.ask_for_others()

    def refresh_hints(self) -> None:
        """Ask the editor to request hints and lenses again, if it can."""
        workspace = self.client_capabilities.workspace
        if workspace is not None and workspace.inlay_hint is not None and workspace.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    async def refresh(self) -> None:
        """Read files and settings anew."""
        await self.do(self.session.forget)
        self.ask_for_others()

    async def stop(self) -> None:
        """Write results to the cache, and let the server end with 0."""
        self._schedule.stop()
        await self.do(self.session.forget)
        self.exit_code = 0

    def end(self) -> None:
        """End the thread."""
        self._executor.shutdown(cancel_futures=True)

    def tell(self, problems: list[Problem]) -> None:
        """Write problems to the log of the editor."""
        for problem in problems:
            place = problem.path if problem.line is None else f"{problem.path}:{problem.line}"
            text = "; ".join(problem_sentences(problem))
            message = f"{place}: {text}" if place else text
            self.window_log_message(types.LogMessageParams(types.MessageType.Error, message))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Write a fault of the server to the log of the editor, without a pop-up."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"{SOURCE}: {error}"))

    async def _check(self, uri: str) -> None:
        document = self.open.get(uri)
        if document is None:
            return
        before = self.checked.get(uri)
        is_draft = before is not None and before.document is not document
        found = await self.do(self.session.check, document, self.texts, is_draft)
        if self.open.get(uri) is not document:
            # A later text waits for its check, or the document was closed.
            return
        self.checked[uri] = found
        if not found.is_final and not self._schedule.is_due(uri):
            self._schedule.ask(uri, LONG_PAUSE)
        self._again[uri] = asyncio.get_running_loop().time() + min(found.seconds, _LONGEST_PAUSE)
        if found.problems != self._told.get(uri, ()):
            self._told[uri] = found.problems
            self.tell(list(found.problems))
        if not found.parses and not found.problems and before is not None:
            # Half typed: the editor moves the diagnostics that it has with the text.
            return
        cells = self.cells.get(uri)
        if cells is None:
            self._publish(uri, diagnostics(found, self.encoding), document.version)
            return
        for cell, each in diagnostics_by_cell(cells, found, self.encoding).items():
            self._publish(cell, each, None)

    async def _rest(self) -> None:
        await self.do(self.session.rest)

    def _publish(self, uri: str, found: list[types.Diagnostic], version: int | None) -> None:
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))


def serve(cache: Path | None) -> int:
    """Serve an editor over standard input and output until it leaves; the exit code."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Nothing but messages of the protocol may go to standard output.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    threading.stack_size(_STACK)
    server = made(cache)
    try:
        server.start_io(sys.stdin.buffer, out)
    finally:
        server.end()
    return server.exit_code


def made(cache: Path | None) -> Server:
    """A server with its features registered."""
    server = Server(cache)
    _add_documents(server)
    _add_settings(server)
    _add_answers(server)
    _add_hints(server)

    @server.feature(types.SHUTDOWN)
    async def shutdown(params: None) -> None:
        await server.stop()

    return server


def _add_documents(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        if document.language_id in _LANGUAGES:
            server.take(document.uri, document.version, document.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        if uri in server.open:
            text = server.workspace.get_text_document(uri).source
            server.take(uri, params.text_document.version, text)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(params: types.DidSaveTextDocumentParams) -> None:
        if not watches(server.client_capabilities):
            await server.refresh()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(params: types.DidCloseTextDocumentParams) -> None:
        await server.close(params.text_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open_notebook(params: types.DidOpenNotebookDocumentParams) -> None:
        take_notebook(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change_notebook(params: types.DidChangeNotebookDocumentParams) -> None:
        take_notebook(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    async def did_save_notebook(params: types.DidSaveNotebookDocumentParams) -> None:
        if not watches(server.client_capabilities):
            await server.refresh()

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    async def did_close_notebook(params: types.DidCloseNotebookDocumentParams) -> None:
        await server.close(params.notebook_document.uri)

    def take_notebook(uri: str) -> None:
        notebook = server.workspace.get_notebook_document(notebook_uri=uri)
        if notebook is None:
            return
        found = []
        for cell in notebook.cells:
            document = server.workspace.get_text_document(cell.document)
            is_code = cell.kind is types.NotebookCellKind.Code and document.language_id in _LANGUAGES
            found.append(OpenCell(cell.document, document.version, document.source, is_code))
        server.take_notebook(uri, notebook.version, cells_of(found))

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def did_change_files(params: types.DidChangeWatchedFilesParams) -> None:
        # The editor's text of an open document counts, whatever is written to its file.
        known = {uri for uri in server.open if uri.endswith((".py", ".pyi"))}
        changed = types.FileChangeType.Changed
        if any(event.uri not in known or event.type != changed for event in params.changes):
            await server.refresh()
        if any(event.uri.endswith(".jsonl.gz") for event in params.changes):
            server.refresh_hints()


def _add_settings(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        folders = params.workspace_folders or []
        root = folders[0].uri if folders else params.root_uri
        folder = to_fs_path(root) if root else params.root_path
        if folder and os.path.isdir(folder):
            # Findings are those of `perflint check` there.
            os.chdir(folder)

    @server.feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        if watches(server.client_capabilities):
            watchers = [types.FileSystemWatcher(pattern) for pattern in _WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            registration = types.Registration("perflint-files", method, options)
            await server.client_register_capability_async(types.RegistrationParams([registration]))
        await take_settings(None)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        await take_settings(params.settings)

    async def take_settings(sent: object) -> None:
        workspace = server.client_capabilities.workspace
        if sent is None and workspace is not None and workspace.configuration:
            items = [types.ConfigurationItem(section=SECTION)]
            answer = await server.workspace_configuration_async(types.ConfigurationParams(items))
            sent = answer[0] if answer else None
        if sent is not None:
            await server.configure(sent)


def _add_answers(server: Server) -> None:
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
            found = [await completed(action) for action in actions(checked, shown, params.range, only)]
            return [action for action in found if action.edit is not None]
        return list(actions(checked, shown, params.range, only))

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        return await completed(action)

    async def completed(action: types.CodeAction) -> types.CodeAction:
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
            action.edit = edit(checked, made.text, versioned)
        elif made.reasons and resolves(server.client_capabilities):
            message = f"{action.title}: not done: {'; '.join(made.reasons)}"
            server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, message))
        return action

    def edit(checked: Checked, text: str, versioned: bool) -> types.WorkspaceEdit | None:
        """The edit that gives a document another text; None, and a message, if its cells cannot hold that."""
        cells = server.cells.get(checked.document.uri)
        if cells is None:
            return workspace_edit(checked, text, server.encoding, versioned)
        try:
            return edit_of_cells(cells, text, server.encoding, versioned)
        except NotebookError as error:
            server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"{SOURCE}: {error.message}"))
            return None

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


def _add_hints(server: Server) -> None:
    devices: dict[str, tuple[Document, list[Bound]]] = {}
    """The devices of each open document, at the version for which they were asked last."""

    async def bound(document: Document) -> list[Bound]:
        known = devices.get(document.uri)
        if known is None or known[0] is not document:
            problems: list[Problem] = []
            found = await server.do(server.session.devices, document, server.texts, problems)
            server.tell(problems)
            for uri in devices.keys() - server.open.keys():
                del devices[uri]
            known = devices[document.uri] = document, found
        return known[1]

    async def costs(source: Source) -> Measured | None:
        problems: list[Problem] = []
        found = await server.do(server.session.measured, source, problems)
        server.tell(problems)
        return found

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        uri, asked = params.text_document.uri, params.range
        document = server.open.get(server.owners.get(uri, uri))
        if document is None or not server.session.choices.inlay_hints:
            return []
        source = Source(document.path, document.text)
        names = await bound(document)
        cells = server.cells.get(document.uri)
        if cells is None or uri not in server.owners:
            return list(inlay_hints(source, names, await costs(source), asked, server.encoding))
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
        return list(code_lenses(checked.source, await costs(checked.source), server.encoding))

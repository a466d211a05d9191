"""The server: documents come in, diagnostics go out; fixes and beliefs are given when the editor asks."""

from __future__ import annotations

import asyncio
import os
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
from perflint.frozen import replace
from perflint.integrations.lsp.choices import Choices, editor_choices
from perflint.integrations.lsp.diagnostics import SOURCE, diagnostics
from perflint.integrations.lsp.notebooks import Cells, diagnostics_by_cell
from perflint.integrations.lsp.places import Stage
from perflint.integrations.lsp.schedule import LONG_PAUSE, Schedule
from perflint.integrations.lsp.session import Checked, Document, Session
from perflint.output.plain import problem_sentences
from perflint.source.text import Source
from perflint.tracer.costs import Measured

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
        self._devices: dict[str, tuple[Document, list[Bound]]] = {}
        """The names with known devices of a document, at the version for which they were asked last."""
        self._taken = 0
        """The texts that have come from the editor."""
        self._again: dict[str, float] = {}
        """The time before which a document is not checked again."""
        self._parsed: dict[str, Checked] = {}
        """The latest check of a text that could be parsed."""
        self._pauses: dict[str, float] = {}
        """Seconds between a sketch of a document and the draft: as long as its last whole check took."""
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
        """Take the text of a document that is not a notebook now, even if it was one before."""
        self._forget_cells(uri)
        self._take(uri, version, text)

    def _take(self, uri: str, version: int, text: str) -> None:
        """Take a text of a document, and check it and the documents that it may concern.

        After a check there is a pause as long as the check took, so that checks take half of the time. A check that
        is not a sketch ends at once, since it may take much longer, and is made again later.
        """
        path = to_fs_path(uri)
        if path is None:
            # It is not a file, such as a cell of a notebook.
            return
        self.open[uri] = Document(uri, os.path.abspath(path), version, text)
        self._taken += 1
        self._schedule.ask(uri, self._again.get(uri, 0.0) - asyncio.get_running_loop().time())
        self.ask_for_others(uri)

    def take_notebook(self, uri: str, version: int, cells: Cells) -> None:
        """Take the cells of a notebook, and check them as one text."""
        self._forget_cells(uri, but=cells.uris)
        self.cells[uri] = cells
        self.owners |= dict.fromkeys(cells.uris, uri)
        self._take(uri, version, cells.notebook.text)

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
        self._devices.pop(uri, None)
        self._told.pop(uri, None)
        self._again.pop(uri, None)
        self._parsed.pop(uri, None)
        self._pauses.pop(uri, None)
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

    async def devices(self, document: Document) -> list[Bound]:
        """The names of an open document with tensors on a known device."""
        known = self._devices.get(document.uri)
        if known is not None and known[0] is document:
            return known[1]
        problems: list[Problem] = []
        found = await self.do(self.session.devices, document, self.texts, problems)
        self.tell(problems)
        if document.uri in self.open:
            self._devices[document.uri] = document, found
        return found

    async def costs(self, source: Source) -> Measured | None:
        """The costs of the lines of a document in the traces of the settings."""
        problems: list[Problem] = []
        found = await self.do(self.session.measured, source, problems)
        self.tell(problems)
        return found

    async def configure(self, sent: object) -> None:
        """Take the settings of the editor, or the defaults if they are wrong."""
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
        self._forget_notifications()
        document = self.open.get(uri)
        if document is None:
            return
        before = self.checked.get(uri)
        stage, taken = _next_stage(document, before), self._taken
        known = self._parsed.get(uri)
        found = await self.do(self.session.check, document, self.texts, stage, known, lambda: self._taken == taken)
        if found is None or self.open.get(uri) is not document:
            # A later text waits for its check, or the document was closed.
            return
        cells = self.cells.get(uri)
        is_whole = cells is None or not cells.notebook.broken
        if not is_whole and known is not None:
            # A half-typed cell may define what others use: their findings stay as they are.
            found = replace(found, findings=(), parses=False)
        self.checked[uri] = found
        if found.parses and is_whole:
            self._parsed[uri] = found
        if found.stage is not Stage.SKETCH:
            self._pauses[uri] = min(found.seconds, _LONGEST_PAUSE)
        if not found.is_final and not self._schedule.is_due(uri):
            is_sketch = found.stage is Stage.SKETCH
            self._schedule.ask(uri, self._pauses.get(uri, _LONGEST_PAUSE) if is_sketch else LONG_PAUSE)
        self._again[uri] = asyncio.get_running_loop().time() + min(found.seconds, _LONGEST_PAUSE)
        if found.problems != self._told.get(uri, ()):
            self._told[uri] = found.problems
            self.tell(list(found.problems))
        if not found.parses and not found.problems and before is not None:
            # Half typed: the editor moves the diagnostics that it has with the text.
            return
        if cells is None:
            self._publish(uri, diagnostics(found, self.encoding), document.version)
            return
        for cell, each in diagnostics_by_cell(cells, found, self.encoding).items():
            self._publish(cell, each, None)

    def _forget_notifications(self) -> None:
        """Remove the results of notifications, which pygls 2.1 keeps as if they were still awaited."""
        kept = getattr(self.protocol, "_request_futures", {})
        for key in [key for key, future in kept.items() if future.done()]:
            del kept[key]

    async def _rest(self) -> None:
        await self.do(self.session.rest)

    def _publish(self, uri: str, found: list[types.Diagnostic], version: int | None) -> None:
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))


def _next_stage(document: Document, before: Checked | None) -> Stage:
    """The stage of the next check of a document after another one."""
    if before is None:
        return Stage.FINAL
    if before.document is not document:
        return Stage.SKETCH
    return Stage.DRAFT if before.stage is Stage.SKETCH else Stage.FINAL

"""Editors for tests: pygls's own client with a server in a process or in a thread."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import threading
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from perflint.integrations.lsp import serving
from tests.cli.command import ROOT

LIMIT = 60.0
"""Seconds that an answer may take on a busy machine."""
_Result = TypeVar("_Result")


def position(text: str, at: int) -> types.Position:
    """The position of an offset of a text, in UTF-16."""
    before = text[:at].rsplit("\n", 1)[-1]
    return types.Position(text[:at].count("\n"), len(before.encode("utf-16-le")) // 2)


def applied(text: str, edits: list[Any]) -> str:
    """The text after some edits, as an editor makes them."""

    def offset(place: types.Position) -> int:
        start = sum(len(line) for line in text.split("\n")[: place.line]) + place.line
        units = text[start:].encode("utf-16-le")[: place.character * 2]
        return start + len(units.decode("utf-16-le"))

    for edit in sorted(edits, key=lambda each: (each.range.start.line, each.range.start.character), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


class Editor:
    """A client with a server in a thread of this process, which starts at once. Its workspace is a folder."""

    def __init__(self, folder: Path, cache: Path, capabilities: types.ClientCapabilities | None = None) -> None:
        self.folder = folder
        self.client = LanguageClient("tests", "1")
        self.shown: dict[str, types.PublishDiagnosticsParams] = {}
        self.published: list[types.PublishDiagnosticsParams] = []
        self.refreshed = 0
        """How often the server asked to request hints or lenses again."""
        self.log: list[str] = []
        self.messages: list[str] = []
        self.versions: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self._runner = asyncio.Runner()
        self._news = asyncio.Event()
        self._listen()
        self._start(cache)
        parameters = types.InitializeParams(
            capabilities=capabilities or types.ClientCapabilities(),
            workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name)],
        )
        self.capabilities = self.run(self.client.initialize_async(parameters)).capabilities
        self.client.initialized(types.InitializedParams())

    def run(self, awaitable: Awaitable[_Result]) -> _Result:
        """The result of something that the client does."""

        async def limited() -> _Result:
            return await asyncio.wait_for(awaitable, LIMIT)

        return self._runner.run(limited())

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(text.encode())

    def open(self, name: str, text: str) -> list[types.Diagnostic]:
        """Open a document, and wait for its diagnostics."""
        uri = self.uri(name)
        self.versions[name], self.texts[name] = 1, text
        self.client.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, text))
        )
        return self.wait(name)

    def send(self, name: str, text: str) -> None:
        """Change a document."""
        self.versions[name] += 1
        self.texts[name] = text
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.versions[name], self.uri(name)),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def change(self, name: str, text: str) -> list[types.Diagnostic]:
        """Change a document, and wait for the diagnostics of that version."""
        self.send(name, text)
        return self.wait(name)

    def wait(self, name: str) -> list[types.Diagnostic]:
        """The diagnostics of the present version of a document, once they are there."""
        self.until(lambda: self._version(name) == self.versions[name])
        return list(self.shown[self.uri(name)].diagnostics)

    def until(self, holds: Any) -> None:
        """Wait until something holds that messages of the server change."""

        async def waiting() -> None:
            while not holds():
                self._news.clear()
                await self._news.wait()

        self.run(waiting())

    def close(self, name: str) -> None:
        """Close a document."""
        self.client.text_document_did_close(
            types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(self.uri(name)))
        )
        del self.versions[name], self.texts[name]
        self.until(lambda: not self.shown[self.uri(name)].diagnostics)

    def actions(self, name: str, where: types.Range, *only: str) -> list[types.CodeAction]:
        """The code actions at a range, with their edits if they come at once."""
        context = types.CodeActionContext([], only=list(only) or None)
        parameters = types.CodeActionParams(types.TextDocumentIdentifier(self.uri(name)), where, context)
        found = self.run(self.client.text_document_code_action_async(parameters))
        return [each for each in found or () if isinstance(each, types.CodeAction)]

    def after(self, name: str, action: types.CodeAction) -> str:
        """The text of a document after an action."""
        if action.edit is None:
            action = self.run(self.client.code_action_resolve_async(action))
        assert action.edit is not None
        edits: list[Any] = []
        for edit in action.edit.document_changes or ():
            assert isinstance(edit, types.TextDocumentEdit)
            assert edit.text_document.version == self.versions[name]
            edits += edit.edits
        for found in (action.edit.changes or {}).values():
            edits += found
        return applied(self.texts[name], edits)

    def hover(self, name: str, at: str) -> str:
        """The text of the hover over the first place of a text."""
        text = self.texts[name]
        parameters = types.HoverParams(
            types.TextDocumentIdentifier(self.uri(name)), position(text, text.index(at) + len(at) - 1)
        )
        found = self.run(self.client.text_document_hover_async(parameters))
        if found is None:
            return ""
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    def leave(self) -> int:
        """End the server in order; its exit code."""
        self.run(self.client.shutdown_async(None))
        return self.exit()

    def exit(self) -> int:
        """End the server; its exit code."""
        self.client.exit(None)
        code = self._end()
        self._runner.close()
        return code

    def _start(self, cache: Path) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self._faults = _Faults()
        logging.getLogger("pygls").addHandler(self._faults)
        self._server = serving.made(cache)
        self._thread = threading.Thread(target=self._serve, args=[listener])
        self._thread.start()
        self.run(self.client.start_tcp(*listener.getsockname()))

    def _serve(self, listener: socket.socket) -> None:
        with listener, listener.accept()[0] as connection, connection.makefile("rwb") as file:
            try:
                self._server.start_io(file, file)
            finally:
                self._server.end()

    def _end(self) -> int:
        self.run(self.client.stop())
        self._thread.join(LIMIT)
        logging.getLogger("pygls").removeHandler(self._faults)
        assert not self._faults.found
        return self._server.exit_code

    def _version(self, name: str) -> int | None:
        known = self.shown.get(self.uri(name))
        return None if known is None else known.version

    def _listen(self) -> None:
        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: types.PublishDiagnosticsParams) -> None:
            self.shown[params.uri] = params
            self.published.append(params)
            self._news.set()

        @self.client.feature(types.WINDOW_LOG_MESSAGE)
        def log(params: types.LogMessageParams) -> None:
            self.log.append(params.message)
            self._news.set()

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def show(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)
            self._news.set()

        @self.client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
        def refresh_hints(params: None) -> None:
            self.refreshed += 1
            self._news.set()

        @self.client.feature(types.WORKSPACE_CODE_LENS_REFRESH)
        def refresh_lenses(params: None) -> None:
            self.refreshed += 1
            self._news.set()

        @self.client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def register(params: types.RegistrationParams) -> None:
            self.registered = params.registrations


class Installed(Editor):
    """A client that starts `perflint lsp` in a folder, and talks to it over standard input and output."""

    def __init__(
        self, folder: Path, cache: Path, capabilities: types.ClientCapabilities | None = None, **environment: str
    ) -> None:
        self._environment = environment
        super().__init__(folder, cache, capabilities)

    @property
    def process(self) -> int:
        """The number of the server's process."""
        server = self.client._server
        assert server is not None
        return server.pid

    def _start(self, cache: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PERFLINT_")}
        environment = kept | {"PYTHONPATH": str(ROOT)} | self._environment
        command = [sys.executable, "-m", "perflint", "lsp", "--cache-dir", str(cache)]
        self.run(self.client.start_io(*command, cwd=self.folder, env=environment))

    def _end(self) -> int:
        server = self.client._server
        assert server is not None and server.stderr is not None
        self.run(server.wait())
        errors = self.run(server.stderr.read()).decode()
        self.run(self.client.stop())
        assert "Traceback" not in errors, errors
        assert server.returncode is not None
        return server.returncode


class _Faults(logging.Handler):
    """The errors that pygls logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())

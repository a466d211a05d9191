"""The messages by which an editor gives the server documents and settings."""

from __future__ import annotations

import os

from lsprotocol import types
from pygls.uris import to_fs_path

from perflint.integrations.lsp.abilities import watches
from perflint.integrations.lsp.choices import SECTION
from perflint.integrations.lsp.notebooks import OpenCell, cells_of
from perflint.integrations.lsp.server import Server

_TRACES = "**/perflint-trace*.jsonl.gz"
"""The recordings whose names are those that `perflint trace` gives by default."""
_WATCHED = (
    "**/*.{py,pyi}",
    "**/{pyproject,perflint,.perflint}.toml",
    "**/{.gitignore,setup.py,requirements*.txt}",
    _TRACES,
)
_LANGUAGES = ("", "python")


def add_documents(server: Server) -> None:
    """Let the server take documents, notebooks and changes of files."""

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

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(params: types.DidCloseTextDocumentParams) -> None:
        await server.close(params.text_document.uri)

    for method in (types.TEXT_DOCUMENT_DID_SAVE, types.NOTEBOOK_DOCUMENT_DID_SAVE):

        @server.feature(method)
        async def did_save(params: types.DidSaveTextDocumentParams | types.DidSaveNotebookDocumentParams) -> None:
            if not watches(server.client_capabilities):
                await server.refresh()

    for method in (types.NOTEBOOK_DOCUMENT_DID_OPEN, types.NOTEBOOK_DOCUMENT_DID_CHANGE):

        @server.feature(method)
        def did_change_notebook(
            params: types.DidOpenNotebookDocumentParams | types.DidChangeNotebookDocumentParams,
        ) -> None:
            take_notebook(params.notebook_document.uri)

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
        known = {uri: document.path for uri, document in server.open.items() if uri.endswith((".py", ".pyi"))}
        changed = types.FileChangeType.Changed
        if any(event.uri not in known or event.type != changed for event in params.changes):
            await server.refresh()
        else:
            await server.do(server.session.note_written, [known[event.uri] for event in params.changes])
        if any(event.uri.endswith(".jsonl.gz") for event in params.changes):
            server.refresh_hints()


def add_settings(server: Server) -> None:
    """Let the server take folders and settings of the editor."""

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

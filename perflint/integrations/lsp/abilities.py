"""The abilities that an editor states."""

from __future__ import annotations

from lsprotocol import types


def watches(client: types.ClientCapabilities) -> bool:
    """True if the editor reports changed files."""
    workspace = client.workspace
    watching = workspace.did_change_watched_files if workspace is not None else None
    return watching is not None and bool(watching.dynamic_registration)


def resolves(client: types.ClientCapabilities) -> bool:
    """True if the editor asks for the edit of an action when it is chosen."""
    documents = client.text_document
    action = documents.code_action if documents is not None else None
    support = action.resolve_support if action is not None else None
    return support is not None and "edit" in support.properties


def takes_versions(client: types.ClientCapabilities) -> bool:
    """True if the editor takes edits for one version of a document."""
    workspace = client.workspace
    edit = workspace.workspace_edit if workspace is not None else None
    return edit is not None and bool(edit.document_changes)

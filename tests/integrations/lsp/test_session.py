"""Checks that an edit makes useless, without an editor."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.workspace import Workspace

from perflint.integrations.lsp.server import Server, made
from perflint.integrations.lsp.session import Checked, Document, Session, Texts
from tests.integrations.lsp.test_server import HOT

MANY = HOT + "".join(HOT.replace("train", f"train_{number}") for number in range(5))


@pytest.fixture
def session() -> Iterator[Session]:
    found = Session()
    yield found
    found.forget()


def test_a_check_that_is_not_wanted_any_more_ends(session: Session, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / "a.py"
    path.write_text(MANY)
    asked = []

    def is_wanted() -> bool:
        asked.append(None)
        return len(asked) < 3

    def check(version: int, text: str, draft: bool = False, ask: bool = True) -> Checked | None:
        document = Document(path.as_uri(), str(path), version, text)
        return session.check(document, {str(path): text}, draft, is_wanted if ask else None)

    # Without an edit, the result goes into the cache, so the check goes on.
    on_disk = check(0, MANY)
    assert on_disk is not None and len(on_disk.findings) == 6 and not asked
    assert check(1, MANY + HOT) is None
    assert len(asked) == 3
    # A draft is what the user waits for.
    draft = check(1, MANY + HOT, draft=True)
    assert draft is not None and len(draft.findings) == 7 and len(asked) == 3
    again = check(1, MANY + HOT, ask=False)
    assert again is not None and again.findings == draft.findings and not again.problems


class Endless(Session):
    """Checks of a text without a draft end only if they are not wanted any more."""

    done: list[tuple[int, bool]]

    def check(
        self, document: Document, texts: Texts, draft: bool = False, is_wanted: Callable[[], bool] | None = None
    ) -> Checked | None:
        while not draft and document.version and is_wanted is not None and is_wanted():
            time.sleep(0.01)
        self.done.append((document.version, draft))
        found = super().check(document, texts, draft)
        assert found is not None
        if draft:
            return Checked(document, found.source, found.findings, is_final=False)
        return None if document.version else found


def test_an_edit_ends_a_long_check(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "a.py").write_text(HOT)
    (tmp_path / "b.py").write_text(HOT)
    uri = (tmp_path / "a.py").as_uri()
    server = Server(None)
    server.protocol.server_capabilities = types.ServerCapabilities()
    server.session = session = Endless()
    session.done = []
    shown: list[int | None] = []

    def publish(uri: str, found: list[types.Diagnostic], version: int | None) -> None:
        shown.append(version)

    server._publish = publish  # type: ignore[method-assign]

    async def until(holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.01)

    async def typing() -> None:
        server.take(uri, 0, HOT)
        await until(lambda: shown == [0])
        server.take(uri, 1, HOT + "x = 1\n")
        # The draft is shown, and the check in full begins.
        await until(lambda: shown == [0, 1])
        await asyncio.sleep(0.7)
        assert session.done == [(0, False), (1, True)]
        server.take(uri, 2, HOT + "x = 2\n")
        await until(lambda: shown == [0, 1, 2])
        assert session.done == [(0, False), (1, True), (1, False), (2, True)]
        # The check of another document, too.
        await asyncio.sleep(0.7)
        server.take((tmp_path / "b.py").as_uri(), 0, HOT)
        await until(lambda: shown == [0, 1, 2, 0])
        server.take(uri, 3, HOT)
        await server.stop()

    asyncio.run(asyncio.wait_for(typing(), 60))
    server.end()


def test_notifications_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / "a.py"
    path.write_text(HOT)
    server = made(None)
    server.protocol.server_capabilities = types.ServerCapabilities()
    server.protocol._workspace = Workspace(tmp_path.as_uri())
    shown: list[int | None] = []

    def publish(uri: str, found: list[types.Diagnostic], version: int | None) -> None:
        shown.append(version)

    server._publish = publish  # type: ignore[method-assign]
    requests = server.protocol._request_futures

    async def typing() -> None:
        # The answer of the editor to a question of the server is still awaited.
        requests["asked"] = Future()
        item = types.TextDocumentItem(path.as_uri(), "python", 0, HOT)
        server.protocol._handle_notification("textDocument/didOpen", types.DidOpenTextDocumentParams(item))
        while shown != [0]:
            await asyncio.sleep(0.01)
        identifier = types.VersionedTextDocumentIdentifier(1, path.as_uri())
        changes = [types.TextDocumentContentChangeWholeDocument(HOT + "x = 1\n")]
        server.protocol._handle_notification(
            "textDocument/didChange", types.DidChangeTextDocumentParams(identifier, changes)
        )
        while shown != [0, 1]:
            await asyncio.sleep(0.01)
        await server.stop()

    asyncio.run(asyncio.wait_for(typing(), 60))
    server.end()
    assert list(requests) == ["asked"]

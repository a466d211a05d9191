"""Checks that an edit makes useless, without an editor."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.workspace import Workspace

from perflint.integrations.lsp.places import Stage
from perflint.integrations.lsp.server import Server
from perflint.integrations.lsp.serving import made
from perflint.integrations.lsp.session import Checked, Document, Session, Texts
from tests.integrations.lsp.test_server import HOT

MANY = HOT + "".join(HOT.replace("train", f"train_{number}") for number in range(5))
MORE = HOT.replace("train", "train_more")


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

    def check(
        version: int, text: str, stage: Stage = Stage.FINAL, before: Checked | None = None, ask: bool = True
    ) -> Checked | None:
        document = Document(path.as_uri(), str(path), version, text)
        return session.check(document, {str(path): text}, stage, before, is_wanted if ask else None)

    # Without an edit, the result goes into the cache, so the check goes on.
    on_disk = check(0, MANY)
    assert on_disk is not None and len(on_disk.findings) == 6 and not asked
    assert check(1, MANY + MORE) is None
    assert len(asked) == 3
    # A sketch is what the user waits for.
    sketch = check(1, MANY + MORE, Stage.SKETCH, on_disk)
    assert sketch is not None and len(sketch.findings) == 7 and len(asked) == 3 and not sketch.is_final
    assert check(1, MANY + MORE, Stage.DRAFT) is None
    again = check(1, MANY + MORE, ask=False)
    assert again is not None and len(again.findings) == 7 and again.is_final and not again.problems


def random_text(lines: list[str], dice: random.Random) -> list[str]:
    """Lines with a change that leaves them a program."""
    at = dice.randrange(len(lines))
    kind = dice.randrange(3)
    body = [number for number, line in enumerate(lines) if line.startswith("        ")]
    if kind == 0 and body:
        at = dice.choice(body)
        wait = dice.choice(["print(loss.item())", "torch.cuda.synchronize()", "y = 1", "# perflint: ignore", ""])
        return [*lines[:at], f"        {wait}\n", *lines[at:]]
    return [*lines[:at], *lines[at + dice.randrange(1, 4) :]] if kind == 1 else [*lines, *HOT.splitlines(True)[1:]]


def test_after_all_stages_the_findings_are_those_of_a_check(session: Session, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / "a.py"
    path.write_text(MANY)
    (tmp_path / "b.py").write_text("from a import train\n\nfor _ in range(9):\n    train(0, 0, 0)\n")
    dice = random.Random(3)
    lines = MANY.splitlines(keepends=True)
    before, stages = None, list(Stage)
    for version in range(20):
        text = "".join(lines)
        document = Document(path.as_uri(), str(path), version, text)
        for stage in stages if version else [Stage.FINAL]:
            found = session.check(document, {str(path): text}, stage, before)
            assert found is not None and not found.problems
            before = found if found.parses else before
        assert found.is_final
        path.write_text(text)
        other = Session()
        fresh = other.check(document, {str(path): text})
        other.forget()
        path.write_text(MANY)
        assert fresh is not None and found.findings == fresh.findings
        lines = random_text(lines, dice) if dice.random() < 0.9 else MANY.splitlines(keepends=True)


class Endless(Session):
    """Drafts and final checks of edited texts end only if they are not wanted any more."""

    done: list[tuple[int, Stage]]

    def check(
        self,
        document: Document,
        texts: Texts,
        stage: Stage = Stage.FINAL,
        before: Checked | None = None,
        is_wanted: Callable[[], bool] | None = None,
    ) -> Checked | None:
        while stage is not Stage.SKETCH and document.version and is_wanted is not None and is_wanted():
            time.sleep(0.01)
        self.done.append((document.version, stage))
        found = super().check(document, texts, stage, before)
        return None if document.version and stage is not Stage.SKETCH else found


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
        # The sketch is shown, and the draft begins.
        await until(lambda: shown == [0, 1])
        await asyncio.sleep(0.7)
        assert session.done == [(0, Stage.FINAL), (1, Stage.SKETCH)]
        server.take(uri, 2, HOT + "x = 2\n")
        await until(lambda: shown == [0, 1, 2])
        assert session.done[2:] == [(1, Stage.DRAFT), (2, Stage.SKETCH)]
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
        while 0 not in shown:
            await asyncio.sleep(0.01)
        identifier = types.VersionedTextDocumentIdentifier(1, path.as_uri())
        changes = [types.TextDocumentContentChangeWholeDocument(HOT + "x = 1\n")]
        server.protocol._handle_notification(
            "textDocument/didChange", types.DidChangeTextDocumentParams(identifier, changes)
        )
        while 1 not in shown:
            await asyncio.sleep(0.01)
        await server.stop()

    asyncio.run(asyncio.wait_for(typing(), 60))
    server.end()
    assert list(requests) == ["asked"]

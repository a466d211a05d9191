"""Random work in an editor: now and then the editor shows what a fresh check of the saved files finds."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types

from perflint.source.text import parse
from tests.cli.command import python
from tests.engine.cache.test_cache import SAMPLE
from tests.integrations.lsp import editor as editors
from tests.integrations.lsp.editor import Installed
from tests.integrations.lsp.test_notebooks import CELLS, Notebook
from tests.integrations.lsp.test_server import edited, resident

EVERYTHING = types.Range(types.Position(0, 0), types.Position(9999, 0))
MOST_OPEN = 5
Shown = Counter[tuple[str, str, int, str]]


class Work:
    """An editor with some documents and a notebook; each method is something that its user does."""

    def __init__(self, folder: Path, cache: Path, dice: random.Random) -> None:
        self.folder, self.dice, self.done = folder, dice, Counter[str]()
        self.editor = Installed(folder, cache)
        self.names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.py"))]
        self.first = {name: self.read(name) for name in self.names}
        """Texts that can be parsed, by the present names of the files."""
        self.past: dict[str, list[str]] = {}
        """The texts of the open documents from before their edits."""
        self.notebook = Notebook(self.editor)
        self.cells = {self.notebook.cell(at): text for at, (kind, text) in enumerate(CELLS, 1) if kind == "python"}

    def read(self, name: str) -> str:
        return (self.folder / name).read_bytes().decode()

    def open(self) -> None:
        closed = [name for name in self.names if name not in self.past]
        if len(self.past) < MOST_OPEN and closed:
            name = self.dice.choice(closed)
            self.past[name] = []
            self.editor.open(name, self.read(name))

    def close(self) -> None:
        name = self.dice.choice(list(self.past))
        if len(self.past) > 1:
            del self.past[name]
            self.editor.close(name)

    def change(self, name: str, text: str) -> None:
        self.past[name].append(self.editor.texts[name])
        self.editor.send(name, text)

    def edit(self) -> None:
        name = self.dice.choice(list(self.past))
        for _ in range(self.dice.choice((1, 1, 2, 5))):
            self.change(name, edited(self.editor.texts[name] or "x", self.dice))

    def undo(self) -> None:
        name = self.dice.choice(list(self.past))
        for _ in range(min(len(self.past[name]), self.dice.choice((1, 3, 9)))):
            self.editor.send(name, self.past[name].pop())

    def save(self) -> None:
        name = self.dice.choice(list(self.past))
        self.editor.write(name, self.editor.texts[name])
        self.saved(name)

    def saved(self, name: str) -> None:
        identifier = types.TextDocumentIdentifier(self.editor.uri(name))
        self.editor.client.text_document_did_save(types.DidSaveTextDocumentParams(identifier))

    def rename(self) -> None:
        """Give a file another name, and later the first one again."""
        name = self.dice.choice(self.names)
        new = name.removesuffix("_new.py") + ".py" if name.endswith("_new.py") else name.removesuffix(".py") + "_new.py"
        is_open = name in self.past
        if is_open:
            del self.past[name]
            self.editor.close(name)
        (self.folder / name).rename(self.folder / new)
        self.names[self.names.index(name)] = new
        self.first[new] = self.first.pop(name)
        if is_open:
            self.past[new] = []
            self.editor.open(new, self.read(new))
        self.saved(self.dice.choice(list(self.past)))

    def pull(self) -> None:
        """Another program writes to a file that is not open."""
        name = self.dice.choice(self.names)
        if name not in self.past:
            self.editor.write(name, edited(self.read(name) or "x", self.dice))
            self.saved(self.dice.choice(list(self.past)))

    def cell(self) -> None:
        cell = self.dice.choice(list(self.cells))
        new = self.cells[cell] if self.dice.random() < 0.3 else edited(self.notebook.texts[cell] or "x", self.dice)
        self.notebook.change(int(cell.rpartition("#")[2]), new)

    def ask(self) -> None:
        """Ask for actions and the edits of some, for hints and hovers."""
        name = self.dice.choice(list(self.past))
        found = self.editor.actions(name, EVERYTHING)
        for action in self.dice.sample(found, min(len(found), 2)):
            self.editor.after(name, action)
        identifier = types.TextDocumentIdentifier(self.editor.uri(name))
        lines = self.editor.texts[name].count("\n") + 1
        place = types.Position(self.dice.randrange(lines), self.dice.randrange(20))
        self.editor.run(self.editor.client.text_document_hover_async(types.HoverParams(identifier, place)))
        self.editor.run(
            self.editor.client.text_document_inlay_hint_async(types.InlayHintParams(identifier, EVERYTHING))
        )

    def fix(self) -> None:
        name = self.dice.choice(list(self.past))
        if found := self.editor.actions(name, EVERYTHING):
            self.change(name, self.editor.after(name, self.dice.choice(found)))

    def some(self) -> None:
        """Do something."""
        weights = {
            self.edit: 40, self.undo: 12, self.save: 6, self.cell: 10, self.ask: 8, self.fix: 4, self.pull: 3,
            self.open: 4, self.close: 3, self.rename: 1,
        }  # fmt: skip
        does = self.dice.choices([*weights], [*weights.values()])[0]
        self.done[does.__name__] += 1
        does()

    def settle(self) -> None:
        """Save all, with texts that can be parsed; the editor comes to show what a fresh check finds."""
        for name in self.names:
            text = self.editor.texts[name] if name in self.past else self.read(name)
            try:
                parse(text)
            except (SyntaxError, ValueError, RecursionError):
                text = self.first[name]
            if name in self.past and text != self.editor.texts[name]:
                self.change(name, text)
            self.editor.write(name, text)
        for number, (kind, _) in enumerate(CELLS, 1):
            if kind == "python":
                self.notebook.change(number, self.cells[self.notebook.cell(number)])
        cells = [
            {"cell_type": "markdown" if kind == "markdown" else "code", "source": text} for kind, text in CELLS[:4]
        ]
        self.editor.write("nb.ipynb", json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
        self.saved(next(iter(self.past)))
        fresh = self.fresh()
        self.done["findings compared"] += fresh.total()
        try:
            self.editor.until(lambda: self.shown() == fresh)
        except TimeoutError:
            shown = self.shown()
            raise AssertionError(f"missing: {fresh - shown}; too many: {shown - fresh}") from None
        # No later check changes this.
        for name in self.past:
            self.editor.actions(name, EVERYTHING)
        assert self.shown() == fresh

    def shown(self) -> Shown:
        found: Shown = Counter()
        addresses = {self.editor.uri(name): name for name in self.past}
        for address in [*addresses, *self.cells]:
            if (known := self.editor.shown.get(address)) is not None:
                for each in known.diagnostics:
                    line = each.range.start.line + 1
                    found[addresses.get(address, address), str(each.code), line, each.message.split("\n")[0]] += 1
        return found

    def fresh(self) -> Shown:
        """The findings of a command for the open documents."""
        ran = python("-m", "perflint", "check", ".", "--no-cache", "--output-format=json", cwd=self.folder)
        found: Shown = Counter()
        for each in json.loads(ran.out)["findings"]:
            name = self.notebook.cell(each["cell"]) if each["cell"] else each["path"]
            if name in self.past or name in self.cells:
                found[name, each["code"], each["line"], each["message"]] += 1
        return found


def project(folder: Path, is_long: bool) -> None:
    """A few files, or those of torch's optimizers."""
    sources = [SAMPLE]
    if is_long:
        spec = find_spec("torch")
        if spec is None or spec.origin is None:
            pytest.skip("needs torch")
        sources = [Path(spec.origin).parent / name for name in ("optim", "amp")]
    for source in sources:
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "perflint.toml").write_text('profile = "audit"\n')


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize(("seconds", "rounds"), [(6, 2), pytest.param(3600, 20, marks=pytest.mark.slow)])
def test_the_editor_shows_what_a_fresh_check_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int, rounds: int
) -> None:
    monkeypatch.setattr(editors, "LIMIT", 900.0)
    folder = tmp_path / "project"
    project(folder, rounds > 2)
    work = Work(folder, tmp_path / "cache", random.Random(seconds))
    work.open()
    sizes, began = [], time.monotonic()
    for number in range(1, rounds + 1):
        while time.monotonic() < began + seconds * number / rounds:
            work.some()
            time.sleep(work.dice.choice((0.0, 0.05, 0.2)))
        work.settle()
        sizes.append(round(resident(work.editor.process)))
    print(dict(work.done), sizes)
    assert not work.editor.log
    assert work.editor.leave() == 0
    # In the first third it grows: modules are imported, and the first collections are due.
    assert rounds < 3 or max(sizes[-rounds // 3 :]) < max(sizes[: rounds // 3]) * 1.3

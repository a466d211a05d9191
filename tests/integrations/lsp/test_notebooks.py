"""Open notebooks, through the client of pygls: diagnostics, fixes and hovers in cells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types

from tests.integrations.lsp.editor import Editor, applied, position

IMPORTS = "%pip install torch\nimport torch\nfrom torch import nn\n"
MODEL = "model = nn.Linear(8, 8).cuda()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
TRAIN = """\
%%time
for x, y in torch.utils.data.DataLoader(data):
    with torch.cuda.amp.autocast():
        loss = model(x.cuda()).sum()
    loss.backward()
    optimizer.step()
    print("é", loss.item())
"""
NEW = 'torch.amp.autocast("cuda", dtype=torch.float16)'
CELLS = [("markdown", "# Training"), ("python", IMPORTS), ("python", MODEL), ("python", TRAIN), ("r", "x <- 1")]


class Notebook:
    """A notebook that is open in an editor."""

    def __init__(self, editor: Editor, cells: list[tuple[str, str]] = CELLS) -> None:
        self.editor = editor
        self.uri = editor.uri("nb.ipynb")
        self.version = 1
        self.texts = {f"vscode-notebook-cell:/nb.ipynb#{number}": text for number, (_, text) in enumerate(cells, 1)}
        items = [
            types.TextDocumentItem(uri, language, 1, text)
            for (uri, text), (language, _) in zip(self.texts.items(), cells, strict=True)
        ]
        kinds = [
            types.NotebookCellKind.Markup if language == "markdown" else types.NotebookCellKind.Code
            for language, _ in cells
        ]
        listed = [types.NotebookCell(kind, uri) for kind, uri in zip(kinds, self.texts, strict=True)]
        document = types.NotebookDocument(self.uri, "jupyter-notebook", 1, listed)
        editor.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(document, items))

    def cell(self, number: int) -> str:
        """The address of a cell."""
        return f"vscode-notebook-cell:/nb.ipynb#{number}"

    def shown(self, number: int) -> list[tuple[str, int, int]]:
        """The diagnostics of a cell: code, line and column from 1."""
        found = self.editor.shown[self.cell(number)].diagnostics
        return [(str(each.code), each.range.start.line + 1, each.range.start.character + 1) for each in found]

    def wait(self, number: int, expected: list[tuple[str, int, int]]) -> None:
        """Wait until a cell has some diagnostics."""
        self.editor.until(lambda: self.cell(number) in self.editor.shown and self.shown(number) == expected)

    def change(self, number: int, text: str) -> None:
        """Change the text of a cell."""
        self.version += 1
        self.texts[self.cell(number)] = text
        content = types.NotebookDocumentCellContentChanges(
            types.VersionedTextDocumentIdentifier(self.version, self.cell(number)),
            [types.TextDocumentContentChangeWholeDocument(text)],
        )
        self._send(types.NotebookDocumentCellChanges(text_content=[content]))

    def remove(self, number: int) -> None:
        """Delete a cell."""
        self.version += 1
        structure = types.NotebookDocumentCellChangeStructure(
            types.NotebookCellArrayChange(number - 1, 1, []),
            did_close=[types.TextDocumentIdentifier(self.cell(number))],
        )
        self._send(types.NotebookDocumentCellChanges(structure=structure))

    def _send(self, cells: types.NotebookDocumentCellChanges) -> None:
        identifier = types.VersionedNotebookDocumentIdentifier(self.version, self.uri)
        event = types.NotebookDocumentChangeEvent(cells=cells)
        self.editor.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(identifier, event))

    def actions(self, number: int, line: int) -> list[types.CodeAction]:
        """The actions at a line of a cell."""
        where = types.Range(types.Position(line - 1, 0), types.Position(line - 1, 99))
        identifier = types.TextDocumentIdentifier(self.cell(number))
        parameters = types.CodeActionParams(identifier, where, types.CodeActionContext([]))
        found = self.editor.run(self.editor.client.text_document_code_action_async(parameters)) or ()
        return [each for each in found if isinstance(each, types.CodeAction)]

    def after(self, action: types.CodeAction) -> dict[int, str]:
        """The texts of the cells that an action changes."""
        action = self.editor.run(self.editor.client.code_action_resolve_async(action))
        assert action.edit is not None
        changes = dict(action.edit.changes or {})
        for each in action.edit.document_changes or ():
            assert isinstance(each, types.TextDocumentEdit)
            changes[each.text_document.uri] = list(each.edits)
        return {int(uri.rpartition("#")[2]): applied(self.texts[uri], list(edits)) for uri, edits in changes.items()}


@pytest.fixture(params=[True, False], ids=["versions", "plain"])
def editor(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Editor]:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "perflint.toml").write_text('select = ["TPF101", "TPF902"]\ntorch-version = "2.6"\n')
    edits = types.WorkspaceEditClientCapabilities(document_changes=request.param)
    resolving = types.CodeActionClientCapabilities(resolve_support=types.ClientCodeActionResolveOptions(["edit"]))
    capabilities = types.ClientCapabilities(
        workspace=types.WorkspaceClientCapabilities(workspace_edit=edits),
        text_document=types.TextDocumentClientCapabilities(code_action=resolving),
    )
    found = Editor(tmp_path / "project", tmp_path / "cache", capabilities)
    yield found
    assert found.leave() == 0
    assert not found.log


def test_diagnostics_are_in_cells(editor: Editor) -> None:
    notebook = Notebook(editor)
    notebook.wait(4, [("TPF902", 3, 10), ("TPF101", 7, 16)])
    assert notebook.shown(2) == [] and notebook.shown(3) == []
    assert notebook.cell(1) not in editor.shown and notebook.cell(5) not in editor.shown
    # What another cell says counts.
    notebook.change(2, "import os\n")
    notebook.wait(4, [("TPF101", 7, 16)])
    notebook.change(2, IMPORTS)
    notebook.change(4, f"%%time\n{TRAIN}".replace("%%time\n%%time", "%%time\n#"))
    notebook.wait(4, [("TPF902", 4, 10), ("TPF101", 8, 16)])


def test_cells_come_and_go(editor: Editor) -> None:
    notebook = Notebook(editor)
    notebook.wait(4, [("TPF902", 3, 10), ("TPF101", 7, 16)])
    notebook.remove(4)
    notebook.wait(4, [])
    assert notebook.actions(2, 1) == []
    editor.client.notebook_document_did_close(
        types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(notebook.uri), [])
    )
    editor.until(lambda: len([each for each in editor.published if each.uri == notebook.cell(2)]) >= 3)


def test_fixes_change_their_cells(editor: Editor) -> None:
    notebook = Notebook(editor)
    notebook.wait(4, [("TPF902", 3, 10), ("TPF101", 7, 16)])
    found = {action.title: action for action in notebook.actions(4, 3)}
    fix = next(action for title, action in found.items() if "ignore" not in title and action.kind == "quickfix")
    assert fix.diagnostics is not None and fix.diagnostics[0].range.start.line == 2
    assert notebook.after(fix) == {4: TRAIN.replace("torch.cuda.amp.autocast()", NEW)}
    ignore = found["perflint: ignore TPF902 in this line"]
    changed = notebook.after(ignore)
    assert list(changed) == [4] and "autocast():  # perflint: ignore[TPF902]" in changed[4]
    assert not [each for each in notebook.actions(3, 1) if each.kind == "quickfix"]


def test_hovers_name_cells(editor: Editor) -> None:
    notebook = Notebook(editor)
    notebook.wait(4, [("TPF902", 3, 10), ("TPF101", 7, 16)])
    identifier = types.TextDocumentIdentifier(notebook.cell(4))
    parameters = types.HoverParams(identifier, position(TRAIN, TRAIN.index("loss.item")))
    found = editor.run(editor.client.text_document_hover_async(parameters))
    assert found is not None and isinstance(found.contents, types.MarkupContent) and found.range is not None
    assert "scalar-read-in-loop" in found.contents.value and "cell 4, line 4" in found.contents.value
    assert found.range.start == types.Position(6, 15)


def test_devices_in_cells(editor: Editor) -> None:
    text = "y = torch.zeros(3)\nx = y.cuda()\n"
    notebook = Notebook(editor, [*CELLS[:3], ("python", f"%%time\n{text}"), ("python", text), ("r", text)])

    def hints(number: int, first: int, last: int) -> list[tuple[int, int, str]]:
        where = types.Range(types.Position(first - 1, 0), types.Position(last - 1, 0))
        parameters = types.InlayHintParams(types.TextDocumentIdentifier(notebook.cell(number)), where)
        found = editor.run(editor.client.text_document_inlay_hint_async(parameters)) or ()
        return [(each.position.line + 1, each.position.character + 1, str(each.label)) for each in found]

    assert hints(4, 1, 9) == [(2, 2, ": cpu"), (3, 2, ": cuda")]
    assert hints(5, 1, 9) == [(1, 2, ": cpu"), (2, 2, ": cuda")]
    assert hints(5, 2, 2) == [(2, 2, ": cuda")]
    assert hints(1, 1, 9) == hints(2, 1, 9) == hints(6, 1, 9) == []


def test_half_typed_cells_keep_their_diagnostics(editor: Editor) -> None:
    notebook = Notebook(editor)
    notebook.wait(4, [("TPF902", 3, 10), ("TPF101", 7, 16)])
    count = len(editor.published)
    notebook.change(3, "model = (\n")
    assert notebook.actions(4, 3) == []
    assert len(editor.published) == count
    notebook.change(3, MODEL)
    notebook.wait(4, [("TPF902", 3, 10), ("TPF101", 7, 16)])

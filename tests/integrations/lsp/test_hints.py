"""Hints and lenses between the code, through the client of pygls."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types

from tests.cli.command import ROOT
from tests.cli.test_house_rules import PACKAGE, TRAIN
from tests.integrations.lsp.editor import Editor, Installed

EXAMPLES = ROOT / "docs" / "examples" / "tracing"
SLOW = (EXAMPLES / "slow.py").read_text()
FILE = "docs/examples/tracing/slow.py"
CODE = """\
import torch


def train(model: torch.nn.Module, loader, unknown):
    for é, y in loader:
        é, y = é.cuda(), y
        z = torch.zeros(3)
        other = unknown(z)
        maybe = z if other else é
        number = é.sum().item()
"""


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copy(EXAMPLES / "slow.jsonl.gz", folder / "run.jsonl.gz")
    (folder / "docs" / "examples" / "tracing").mkdir(parents=True)
    (folder / FILE).write_text(SLOW)
    refreshed = types.WorkspaceClientCapabilities(
        inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True),
        code_lens=types.CodeLensWorkspaceClientCapabilities(refresh_support=True),
    )
    found = Editor(folder, tmp_path / "cache", types.ClientCapabilities(workspace=refreshed))
    yield found
    assert found.leave() == 0


def configure(editor: Editor, **values: object) -> None:
    """Send settings, and wait until the server asks to request hints and lenses again."""
    before = editor.refreshed
    parameters = types.DidChangeConfigurationParams({"perflint": values})
    editor.client.workspace_did_change_configuration(parameters)
    editor.until(lambda: editor.refreshed == before + 2)


def hints(editor: Editor, name: str, first: int = 1, last: int = 999) -> list[tuple[int, int, str]]:
    """The hints of some lines: line, column and label, from 1."""
    where = types.Range(types.Position(first - 1, 0), types.Position(last - 1, 0))
    parameters = types.InlayHintParams(types.TextDocumentIdentifier(editor.uri(name)), where)
    found = editor.run(editor.client.text_document_inlay_hint_async(parameters)) or ()
    return [(each.position.line + 1, each.position.character + 1, str(each.label)) for each in found]


def lenses(editor: Editor, name: str) -> list[tuple[int, str]]:
    """The lenses of a document: line and title."""
    parameters = types.CodeLensParams(types.TextDocumentIdentifier(editor.uri(name)))
    found = editor.run(editor.client.text_document_code_lens_async(parameters)) or ()
    return [(each.range.start.line + 1, each.command.title) for each in found if each.command is not None]


def test_devices_of_names(editor: Editor) -> None:
    editor.open("a.py", CODE)
    assert hints(editor, "a.py") == [
        (5, 10, ": cpu"),
        (5, 13, ": cpu"),
        (6, 10, ": cuda"),
        (6, 13, ": cpu"),
        (7, 10, ": cpu"),
    ]
    assert hints(editor, "a.py", 7, 8) == [(7, 10, ": cpu")]
    editor.change("a.py", CODE.replace("torch.zeros(3)", "torch.zeros(3, device='cuda')"))
    assert (7, 10, ": cuda") in hints(editor, "a.py") and (9, 14, ": cuda") in hints(editor, "a.py")
    # Half typed.
    editor.send("a.py", "def f(:\n")
    assert hints(editor, "a.py") == [] and lenses(editor, "a.py") == []


def test_costs_of_a_trace(editor: Editor) -> None:
    editor.open(FILE, SLOW)
    assert lenses(editor, FILE) == []
    configure(editor, traces=["run.jsonl.gz"])
    found = lenses(editor, FILE)
    lines = SLOW.splitlines()
    assert found and all(lines[line - 1].startswith(("def ", "    def ")) for line, _ in found)
    assert all(title.startswith("measured: ") and title.endswith(" ms of 17.8 ms") for _, title in found)
    costs = [lines[line - 1] for line, _, label in hints(editor, FILE) if label.endswith("ms a step")]
    assert costs and any("item()" in line for line in costs)
    # Lines that moved are found again.
    editor.change(FILE, "# new\n" + SLOW)
    assert lenses(editor, FILE) == [(line + 1, title) for line, title in found]


def test_verdicts_of_a_trace(editor: Editor) -> None:
    uri = editor.uri(FILE)
    assert {"TPF125", "TPF201"} <= {each.code for each in editor.open(FILE, SLOW)}
    configure(editor, traces=["run.jsonl.gz"])
    editor.until(lambda: any("trace: " in each.message for each in editor.shown[uri].diagnostics))
    found = {(each.range.start.line + 1, each.code): each for each in editor.shown[uri].diagnostics}
    assert "\ntrace: confirmed: 1.94 ms of 17.8 ms a step (11%), 40 times a step\n" in found[49, "TPF125"].message
    # The copies cost nothing in that run.
    assert not [line for line, code in found if code == "TPF201"]
    assert "*trace*: confirmed: 1.06 ms of 17.8 ms" in editor.hover(FILE, "loss.item()")
    # Fixes can still be chosen, also of findings without a verdict.
    (fix,) = [each for each in editor.actions(FILE, found[66, "TPF601"].range) if "ignore" not in each.title]
    assert "fused=True" in editor.after(FILE, fix)
    (fix,) = [each for each in editor.actions(FILE, found[33, "TPF301"].range) if "ignore" not in each.title]
    assert "padding=1, bias=False" in editor.after(FILE, fix)
    # Lines that moved keep their verdicts, and lines that changed lose them.
    changed = editor.change(FILE, "# new\n" + SLOW.replace("loss.item()", "float(loss)"))
    verdicts = {each.range.start.line + 1: "trace: confirmed" in each.message for each in changed}
    assert verdicts[50] and verdicts[78] and not verdicts[79]


def test_a_new_recording_counts(editor: Editor) -> None:
    trace = editor.folder / "perflint-trace.jsonl.gz"
    assert editor.open(FILE, SLOW)
    configure(editor, traces=[trace.name])
    assert lenses(editor, FILE) == []
    shutil.copy(EXAMPLES / "slow.jsonl.gz", trace)
    before = editor.refreshed
    event = types.FileEvent(trace.as_uri(), types.FileChangeType.Created)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
    editor.until(lambda: editor.refreshed == before + 2)
    assert lenses(editor, FILE)
    editor.until(lambda: any("trace: " in each.message for each in editor.shown[editor.uri(FILE)].diagnostics))


def test_both_can_be_turned_off(editor: Editor) -> None:
    editor.open(FILE, SLOW)
    configure(editor, traces=["run.jsonl.gz"], inlayHints=False)
    assert lenses(editor, FILE) and hints(editor, FILE) == []
    configure(editor, traces=["run.jsonl.gz"], codeLens=False)
    assert lenses(editor, FILE) == [] and hints(editor, FILE)
    configure(editor, traces=["run.jsonl.gz"])
    assert lenses(editor, FILE)


def test_faults_are_in_the_log(editor: Editor) -> None:
    editor.open(FILE, SLOW)
    configure(editor, traces=["missing.gz"])
    assert lenses(editor, FILE) == []
    assert len([text for text in editor.log if "missing.gz cannot be read" in text]) == 1
    assert lenses(editor, FILE) == []
    assert len([text for text in editor.log if "missing.gz cannot be read" in text]) == 1
    configure(editor, inlayHint=False)
    editor.until(lambda: any("unknown key `inlayHint`" in text for text in editor.messages))
    assert any("did you mean `inlay-hints`?" in text for text in editor.log)


def test_house_rules_in_an_editor(tmp_path: Path) -> None:
    site = tmp_path / "site" / "acme_rules"
    site.mkdir(parents=True)
    (site / "__init__.py").write_text(PACKAGE)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "perflint.toml").write_text('house-rules = ["acme_rules"]\nselect = ["ACM"]\n')
    paths = os.pathsep.join([str(ROOT), str(site.parent)])
    editor = Installed(tmp_path / "project", tmp_path / "cache", PYTHONPATH=paths)
    (found,) = editor.open("train.py", TRAIN)
    assert (found.code, found.range.start.line) == ("ACM001", 8)
    assert "Finds tensors on the GPU" in editor.hover("train.py", "acme.log")
    fix = next(each for each in editor.actions("train.py", found.range) if "Log it later" in each.title)
    assert "acme.log_later(" in editor.after("train.py", fix)
    assert editor.leave() == 0

"""The server as an editor uses it: a real client over standard input and output."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.cli.command import ROOT, python
from tests.integrations.lsp.editor import Editor, Installed, position

HOT = """\
import torch


def train(model, loader, optimizer):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        print("😀é", loss.item())
"""
FIXABLE = """\
import torch


def train(model, loader, optimizer):
    for x in loader:
        mask = torch.ones(8).cuda()
        more = torch.zeros(8).cuda()
        loss = model(x * mask + more)
        noise = torch.randn(x.shape).to("cuda")
        loss.backward()
        optimizer.step()
"""
HELPER = "import torch\n\n\ndef read(x):\n    return x.item()\n"
CALLER = """\
import torch
from helper import read


def train(model, loader, optimizer):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        read(loss)
"""
WITHOUT_CALL = CALLER.replace("        read(loss)\n", "")

MADE_AND_READ = """\
import torch


def made():
    return torch.ones(8, device="cuda")


def read(x):
    return x.item()
"""
CALLER_OF_BOTH = CALLER.replace("from helper import read", "from ops import made, read").replace("(loss)", "(made())")


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """An editor that can ask for edits later, and takes versions."""
    folder = tmp_path_factory.mktemp("editor")
    (folder / "perflint.toml").write_text("")
    capabilities = types.ClientCapabilities(
        workspace=types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
        ),
        text_document=types.TextDocumentClientCapabilities(
            code_action=types.CodeActionClientCapabilities(
                resolve_support=types.ClientCodeActionResolveOptions(["edit"])
            )
        ),
    )
    found = Installed(folder, tmp_path_factory.mktemp("cache"), capabilities)
    yield found
    assert found.leave() == 0
    assert not found.log


def codes(found: list[types.Diagnostic]) -> list[object]:
    return [each.code for each in found]


def fixed(folder: Path, name: str, *options: str) -> str:
    """The text that `perflint fix` gives for a file."""
    text = (folder / name).read_bytes()
    command = ["-m", "perflint", "fix", "-", "--stdin-filename", name, "--exit-zero", "-q", *options]
    return python(*command, cwd=folder, stdin=text, PYTHONIOENCODING="utf-8").out


def test_diagnostics_appear_and_disappear(editor: Editor) -> None:
    editor.write("one/pyproject.toml", "")
    editor.write("one/a.py", HOT)
    (found,) = editor.open("one/a.py", HOT)
    start = position(HOT, HOT.index("loss.item()"))
    assert start.character == HOT.splitlines()[-1].index("loss.item()") + 1  # The emoji is two units of UTF-16.
    assert found.range == types.Range(start, types.Position(start.line, start.character + len("loss.item()")))
    assert (found.code, found.source, found.severity) == ("TPF101", "perflint", types.DiagnosticSeverity.Warning)
    assert found.message.startswith("`loss.item()` blocks the CPU")
    assert editor.change("one/a.py", HOT.replace("loss.item()", "1")) == []
    assert codes(editor.change("one/a.py", "\n" + HOT)) == ["TPF101"]
    editor.close("one/a.py")


def test_half_typed_text_keeps_what_is_shown(editor: Editor) -> None:
    editor.write("half/pyproject.toml", "")
    assert codes(editor.open("half/a.py", HOT)) == ["TPF101"]
    editor.send("half/a.py", HOT + "for x in (\n")
    everything = types.Range(types.Position(0, 0), types.Position(99, 0))
    assert editor.actions("half/a.py", everything) == []
    assert len(editor.shown[editor.uri("half/a.py")].diagnostics) == 1
    assert editor.change("half/a.py", HOT.replace("loss.item()", "1")) == []
    editor.close("half/a.py")


def test_the_latest_text_counts(editor: Editor) -> None:
    editor.write("fast/pyproject.toml", "")
    editor.open("fast/a.py", HOT)
    before = len(editor.published)
    for number in range(30):
        editor.send("fast/a.py", HOT + f"x{number} = 1\n" * number)
    assert codes(editor.change("fast/a.py", HOT.replace("item()", "tolist()"))) == ["TPF101"]
    assert "tolist" in editor.shown[editor.uri("fast/a.py")].diagnostics[0].message
    assert len(editor.published) - before < 20
    editor.close("fast/a.py")


def test_a_quick_fix_gives_the_text_of_fix(editor: Editor) -> None:
    editor.write("fix/pyproject.toml", "")
    editor.write("fix/a.py", FIXABLE)
    found = editor.open("fix/a.py", FIXABLE)
    first = next(each for each in found if "ones" in each.message)
    fix, ignore = editor.actions("fix/a.py", first.range, "quickfix")
    assert fix.is_preferred and list(fix.diagnostics or ()) == [first] and fix.edit is None
    line = "        mask = torch.ones(8).cuda()\n"
    assert editor.after("fix/a.py", fix) == FIXABLE.replace(line, '        mask = torch.ones(8, device="cuda")\n')
    ignored = FIXABLE.replace(line, f"{line[:-1]}  # perflint: ignore[{first.code}]\n")
    assert editor.after("fix/a.py", ignore) == ignored
    assert len(editor.change("fix/a.py", ignored)) == len(found) - 1
    editor.close("fix/a.py")


def test_an_unsafe_fix_says_so(editor: Editor) -> None:
    editor.write("unsafe/pyproject.toml", "")
    editor.write("unsafe/a.py", FIXABLE)
    noise = next(each for each in editor.open("unsafe/a.py", FIXABLE) if "randn" in each.message)
    fix, _ = editor.actions("unsafe/a.py", noise.range)[:2]
    assert fix.title.endswith("(unsafe)") and not fix.is_preferred
    safe = editor.after("unsafe/a.py", editor.actions("unsafe/a.py", noise.range, "source.fixAll")[0])
    editor.change("unsafe/a.py", safe)
    (noise,) = editor.shown[editor.uri("unsafe/a.py")].diagnostics
    fix = editor.actions("unsafe/a.py", noise.range)[0]
    assert editor.after("unsafe/a.py", fix) == fixed(editor.folder / "unsafe", "a.py", "--unsafe-fixes")
    editor.close("unsafe/a.py")


def test_all_safe_fixes_give_the_text_of_fix(editor: Editor) -> None:
    editor.write("all/pyproject.toml", "")
    text = FIXABLE.replace("\n", "\r\n")
    editor.write("all/a.py", text)
    found = editor.open("all/a.py", text)
    (action,) = editor.actions("all/a.py", found[-1].range, "source.fixAll.perflint")
    now = editor.after("all/a.py", action)
    assert now == fixed(editor.folder / "all", "a.py") and now.count('device="cuda"') == 2
    assert not editor.actions("all/a.py", found[-1].range, "source.organizeImports")
    editor.close("all/a.py")


def test_an_action_fixes_its_own_finding_or_nothing(editor: Editor) -> None:
    editor.write("stale/pyproject.toml", "")
    helper = FIXABLE.replace("def train", "def read(x):\n    return x + torch.ones(8).cuda()\n\n\ndef train", 1)
    editor.write("stale/main.py", CALLER)
    editor.open("stale/main.py", CALLER)
    assert len(editor.open("stale/helper.py", helper)) == 4
    everything = types.Range(types.Position(0, 0), types.Position(99, 0))
    actions = editor.actions("stale/helper.py", everything)
    editor.change("stale/main.py", WITHOUT_CALL)
    editor.until(lambda: len(editor.shown[editor.uri("stale/helper.py")].diagnostics) == 3)
    # The first finding went with the call, so each other one is at another index.
    gone = editor.run(editor.client.code_action_resolve_async(actions[0]))
    assert gone.edit is None and "not done: the finding is no longer there" in editor.messages.pop()
    kept = editor.after("stale/helper.py", actions[2])
    assert kept == helper.replace("torch.ones(8).cuda()\n        more", 'torch.ones(8, device="cuda")\n        more')
    # An editor may count versions anew.
    editor.close("stale/helper.py")
    editor.open("stale/helper.py", helper.replace("        mask = torch.ones(8).cuda()\n", "").replace("mask", "2"))
    assert editor.run(editor.client.code_action_resolve_async(actions[2])).edit is None
    editor.messages.clear()
    editor.close("stale/helper.py")
    editor.close("stale/main.py")


def test_a_file_that_others_wrote_while_it_was_open_counts_once_it_is_closed(editor: Editor) -> None:
    editor.write("written/pyproject.toml", "")
    editor.write("written/helper.py", HELPER)
    editor.write("written/main.py", WITHOUT_CALL)
    editor.open("written/main.py", WITHOUT_CALL)
    assert editor.open("written/helper.py", HELPER) == []
    editor.write("written/main.py", CALLER)
    changed = types.FileEvent(editor.uri("written/main.py"), types.FileChangeType.Changed)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([changed]))
    assert editor.change("written/helper.py", HELPER + "\n") == []
    editor.close("written/main.py")
    assert codes(editor.change("written/helper.py", HELPER)) == ["TPF101"]
    editor.close("written/helper.py")


def test_unsaved_text_of_another_file_counts(editor: Editor) -> None:
    editor.write("two/pyproject.toml", "")
    editor.write("two/helper.py", HELPER)
    editor.write("two/main.py", WITHOUT_CALL)
    assert editor.open("two/helper.py", HELPER) == []
    editor.open("two/main.py", WITHOUT_CALL)
    shown = editor.shown
    editor.change("two/main.py", CALLER)
    editor.until(lambda: len(shown[editor.uri("two/helper.py")].diagnostics) == 1)
    assert "main.py:10" in editor.hover("two/helper.py", "x.item()")
    editor.close("two/main.py")
    editor.until(lambda: not shown[editor.uri("two/helper.py")].diagnostics)
    editor.close("two/helper.py")


def test_calls_of_other_files_are_followed_again_after_a_draft(editor: Editor) -> None:
    editor.write("draft/pyproject.toml", "")
    editor.write("draft/ops.py", MADE_AND_READ)
    editor.write("draft/main.py", CALLER_OF_BOTH)
    assert codes(editor.open("draft/ops.py", MADE_AND_READ)) == ["TPF101"]
    before = len(editor.published)
    assert codes(editor.change("draft/ops.py", MADE_AND_READ.replace("cuda", "cpu"))) == ["TPF101"]
    editor.until(lambda: not editor.shown[editor.uri("draft/ops.py")].diagnostics)
    # A sketch, a draft and the final answer.
    assert len(editor.published) - before == 3
    editor.close("draft/ops.py")


def test_hover(editor: Editor) -> None:
    editor.write("hover/pyproject.toml", "")
    editor.open("hover/a.py", HOT)
    text = editor.hover("hover/a.py", "loss.item")
    parts = ("**TPF101 scalar-read-in-loop**", "*why*: ", "*cost*: Measured", "*rule*: Finds", "heat: **hot**")
    assert all(part in text for part in parts)
    assert editor.hover("hover/a.py", "loss").startswith("`loss`: float tensor")
    assert editor.hover("hover/a.py", "import") == editor.hover("hover/a.py", "print") + "" == ""
    editor.close("hover/a.py")


def test_settings_of_the_editor_and_of_files(editor: Editor) -> None:
    name = "settings/a.py"
    editor.write("settings/pyproject.toml", "")
    editor.write(name, HELPER)
    assert editor.open(name, HELPER) == []

    def configure(**values: object) -> None:
        parameters = types.DidChangeConfigurationParams({"perflint": values})
        editor.client.workspace_did_change_configuration(parameters)

    def count(number: int) -> None:
        editor.until(lambda: len(editor.shown[editor.uri(name)].diagnostics) == number)

    configure(profile="audit", ruleUrl="https://example.org/{code}")
    count(1)
    description = editor.shown[editor.uri(name)].diagnostics[0].code_description
    assert description == types.CodeDescription("https://example.org/TPF101")
    configure(profile="audit", ignore=["TPF101"])
    count(0)
    configure(profile="audit")
    count(1)
    configure(profil="audit")
    editor.until(lambda: editor.messages)
    assert editor.messages.pop() == "perflint: unknown key `profil` in the settings of the editor"
    assert editor.log.pop().endswith("help: did you mean `profile`?")
    count(0)
    # This editor does not tell of changed files: what it saves is enough.
    editor.write("settings/pyproject.toml", '[tool.perflint]\nprofile = "audit"\n')
    saved = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(editor.uri(name)))
    editor.client.text_document_did_save(saved)
    count(1)
    editor.write("settings/pyproject.toml", "[tool.perflint]\nprofile = 3\n")
    editor.client.text_document_did_save(saved)
    count(0)
    assert "`profile` in [tool.perflint] must be" in editor.log.pop()
    editor.write("settings/pyproject.toml", '[tool.perflint]\nprofile = "audit"\nexclude = ["a.py"]\n')
    editor.client.text_document_did_save(saved)
    editor.close(name)


def test_cancellation(editor: Editor) -> None:
    editor.write("long/pyproject.toml", "")
    text = HOT + "".join(HOT.replace("train", f"train_{number}") for number in range(150))
    editor.open("long/a.py", text)

    async def cancelled() -> int:
        protocol = editor.client.protocol
        where = types.Position(8, 22)
        for _ in range(3):
            parameters = types.HoverParams(types.TextDocumentIdentifier(editor.uri("long/a.py")), where)
            answer = protocol.send_request("textDocument/hover", parameters)
        number = next(reversed(protocol._request_futures))
        protocol.notify("$/cancelRequest", types.CancelParams(number))
        with pytest.raises(JsonRpcException) as raised:
            await asyncio.wrap_future(answer)
        return raised.value.code

    assert editor.run(cancelled()) == types.LSPErrorCodes.RequestCancelled
    assert editor.hover("long/a.py", "loss.item")
    editor.close("long/a.py")


BROKEN = """\
import os
from perflint.rules.sync.scalar_read_in_loop import ScalarReadInLoop


def check(self, site):
    print("to the user", flush=True)
    os.write(1, b"from a library")
    raise RuntimeError("boom")


ScalarReadInLoop.check = check
"""


def test_crashes_are_logged_and_standard_output_stays_clean(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "patch").mkdir()
    (tmp_path / "patch" / "sitecustomize.py").write_text(BROKEN)
    capabilities = types.ClientCapabilities(
        workspace=types.WorkspaceClientCapabilities(
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True)
        )
    )
    editor = Installed(tmp_path, tmp_path / ".cache", capabilities, PYTHONPATH=f"{tmp_path / 'patch'}:{ROOT}")
    text = HOT + "        torch.cuda.synchronize()\n"
    editor.write("a.py", text)
    (found,) = editor.open("a.py", text)
    assert found.code == "TPF122"
    editor.until(lambda: editor.log)
    assert len(editor.log) == 1 and "rule TPF101 (scalar-read-in-loop) crashed: RuntimeError: boom" in editor.log[0]
    # An editor that cannot ask for edits later gets them at once.
    (ignore,) = editor.actions("a.py", found.range, "quickfix")
    assert ignore.edit is not None and editor.after("a.py", ignore).endswith("# perflint: ignore[TPF122]\n")
    # Files that change on the disk are read anew.
    assert [each.method for each in editor.registered] == ["workspace/didChangeWatchedFiles"]
    editor.write("pyproject.toml", '[tool.perflint]\nignore = ["TPF122"]\n')
    event = types.FileEvent(editor.uri("pyproject.toml"), types.FileChangeType.Changed)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
    editor.until(lambda: not editor.shown[editor.uri("a.py")].diagnostics)
    assert editor.exit() == 1


def test_the_server_ends_with_its_editor() -> None:
    command = [sys.executable, "-m", "perflint", "lsp", "--stdio", "--no-cache"]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, b"")


def resident(process: int) -> float:
    """The memory of a process in MiB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def edited(text: str, dice: random.Random) -> str:
    """A text with a random edit; not every text that comes out can be parsed."""
    at = dice.randrange(len(text))
    kind = dice.randrange(4)
    if kind == 0:
        return text[:at] + dice.choice(["x", "(", "\n", " ", "loss", ".item()", "😀", "# "]) + text[at:]
    if kind == 1:
        return text[:at] + text[at + dice.randrange(1, 4) :]
    lines = text.splitlines(keepends=True)
    number = dice.randrange(len(lines))
    if kind == 2:
        waits = ("print(loss.item())", "torch.cuda.synchronize()", "y = 1")
        lines.insert(number, f"        {dice.choice(waits)}\n")
    else:
        del lines[number]
    return "".join(lines)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize("edits", [150, pytest.param(20_000, marks=pytest.mark.slow)])
def test_edits_take_no_more_and_more_memory(tmp_path: Path, edits: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    editor = Installed(tmp_path, tmp_path / ".cache")
    whole = HOT + "".join(FIXABLE.replace("train", f"train_{number}") for number in range(5))
    editor.write("helper.py", HELPER)
    editor.open("main.py", CALLER)
    editor.open("a.py", whole)
    dice = random.Random(7)
    text, sizes = whole, []
    everything = types.Range(types.Position(0, 0), types.Position(999, 0))
    for number in range(edits):
        text = whole if number % 20 == 0 else edited(text, dice) or whole
        editor.send("a.py", text)
        # Its answer waits for the check.
        editor.actions("a.py", everything, "refactor")
        sizes.append(resident(editor.process))
    assert not editor.log
    assert codes(editor.change("a.py", HOT)) == ["TPF101"]
    # In the first third it grows: modules are imported, and the first collections are due.
    assert max(sizes[-edits // 5 :]) - max(sizes[: edits // 3]) < 6
    assert editor.leave() == 0

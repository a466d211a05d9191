"""The generated parts of docs/ are up to date."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from perflint.cli.main import main

ROOT = Path(__file__).parents[2]


def _load(name: str) -> ModuleType:
    path = ROOT / "tools" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


generate_docs = _load("generate_docs")
PAGES = generate_docs.rule_files()
HAND_WRITTEN = list(generate_docs.hand_written())
HINT = "run `python tools/generate_docs.py` and read the difference"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_is_up_to_date(path: Path) -> None:
    assert path.exists() and path.read_text(encoding="utf-8") == PAGES[path], HINT


@pytest.mark.parametrize("name", ["settings_files", "command_files", "catalogue_files"])
def test_references_are_up_to_date(name: str) -> None:
    for path, text in getattr(generate_docs, name)().items():
        assert path.read_text(encoding="utf-8") == text, HINT


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_recording_is_up_to_date() -> None:
    for path, text in generate_docs.recording_files().items():
        assert path.read_text(encoding="utf-8") == text, HINT


def test_command_line_has_each_verb_and_option() -> None:
    text = generate_docs.COMMANDS.read_text(encoding="utf-8")
    assert "## perflint check\n\n```\nperflint check [options] [PATH ...]\n```" in text
    assert "| `--jobs N`, `-j N` | Processes that check files" in text


def test_pages_show_the_accuracy_of_the_rule() -> None:
    page = PAGES[generate_docs.RULES / "scalar-read-in-loop.md"]
    assert re.search(r"\n\nCorrect on real code: \d+ of \d+ findings[^\n]*\.\n\n", page)
    assert re.search(r"\n\nSimulated: \d+ findings ran in the tests of \d+ packages: \d+ confirmed[^\n]*\.\n", page)
    assert re.search(r"\n\nOn an NVIDIA H200: \d+ findings ran in \d+ public programs: [^\n]*\.\n$", page)
    assert generate_docs.with_scores("# page\n", []) == "# page\n"


def test_no_page_without_a_rule() -> None:
    assert set(generate_docs.RULES.glob("*.md")) == {*PAGES, generate_docs.NOT_A_RULE}, HINT


@pytest.mark.parametrize("path", HAND_WRITTEN, ids=lambda path: path.name)
def test_shown_output_is_what_the_command_prints(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert generate_docs.refreshed(text) == text, HINT


def test_commands_are_found_and_their_old_output_goes() -> None:
    text = "a\n\n```console\n$ perflint --version\nold\nolder\n```\n\nb\n"
    fresh = generate_docs.refreshed(text)
    assert "old" not in fresh
    assert fresh.startswith("a\n\n```console\n$ perflint --version\nperflint ") and fresh.endswith("\n```\n\nb\n")


def test_readme_shows_a_run() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "$ perflint check docs/examples" in text and "warning[TPF" in text


def test_the_diff_of_the_guide_is_that_of_the_checkout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example states its torch itself, so the diff does not depend on the requirements of the checkout."""
    monkeypatch.chdir(ROOT)
    command = "perflint fix --exit-zero docs/examples/train.py"
    guide = (ROOT / "docs" / "guide" / "fixes.md").read_text(encoding="utf-8")
    shown = guide.partition(f"$ {command}\n")[2].partition("```")[0]
    assert main(command.split()[1:]) == 0
    printed = capsys.readouterr()
    assert printed.out + printed.err == shown

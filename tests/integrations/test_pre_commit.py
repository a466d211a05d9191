"""The hooks that pre-commit offers are commands that perflint takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

import perflint
from perflint.cli.main import main

HOOKS = Path(perflint.__file__).parents[1] / ".pre-commit-hooks.yaml"
ENTRIES = dict(re.findall(r"- id: (\S+)\n(?:  .*\n)*?  entry: (.+)\n", HOOKS.read_text(encoding="utf-8")))

BAD = """\
import torch


def train(model, loader):
    for x in loader:
        with torch.cuda.amp.autocast():
            model(x).backward()
        torch.cuda.synchronize()
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A bad file, and one that is excluded."""
    monkeypatch.chdir(tmp_path)
    file, excluded = Path("train.py"), Path("build/train.py")
    excluded.parent.mkdir()
    for path in (file, excluded):
        path.write_text(BAD)
    Path("requirements.txt").write_text("torch>=2.4\n")
    return file, excluded


def run(hook: str, *files: Path) -> int:
    """Run a hook as pre-commit does, with the names of the files at its end."""
    command, *arguments = shlex.split(ENTRIES[hook])
    assert command == "perflint"
    return main([*arguments, *map(str, files)])


def test_the_hooks() -> None:
    assert list(ENTRIES) == ["perflint", "perflint-fix"]


@pytest.mark.parametrize("name", ["--output-file=README.md", "--apply", "-q.py", "-x/train.py"])
def test_no_file_is_an_option(name: str) -> None:
    """pre-commit puts no `--` before the names of files."""
    hooks = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))
    assert [hook["id"] for hook in hooks] == list(ENTRIES)
    assert all(re.search(hook["exclude"], name) for hook in hooks)
    assert not any(re.search(hook["exclude"], path) for hook in hooks for path in ("train.py", "a/-b.py", "a-b.py"))


def test_check(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    file, excluded = files
    assert run("perflint", file, excluded) == 1
    out = capsys.readouterr().out
    assert "train.py:6:14" in out and "build" not in out
    assert run("perflint", excluded) == 0


def test_fix(files: tuple[Path, Path]) -> None:
    file, excluded = files
    assert run("perflint-fix", file, excluded) == 0
    fixed = 'torch.amp.autocast("cuda", dtype=torch.float16)'
    assert file.read_text() == BAD.replace("torch.cuda.amp.autocast()", fixed)
    assert excluded.read_text() == BAD

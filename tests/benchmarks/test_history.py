"""How perflint is held against histories: on a repository made for it."""

from __future__ import annotations

import subprocess
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "accuracy" / "history" / "run.py"

BEFORE = """\
import torch


def train(model: torch.nn.Module, loader, optimizer):
    for step, x in enumerate(loader):
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""
AFTER = BEFORE.replace("        print(loss", "        if step % 100 == 0:\n            print(loss")


@pytest.fixture(scope="module")
def history() -> ModuleType:
    spec = spec_from_file_location("history", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def mirrors(tmp_path: Path) -> Path:
    """A project with a commit that mends a line."""
    repository = tmp_path / "owner+project"
    repository.mkdir()
    for text in (BEFORE, AFTER):
        (repository / "train.py").write_text(text)
        for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
            identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
            subprocess.run(["git", *identity, *command], cwd=repository, check=True)
    return tmp_path


def case(**changes: object) -> dict[str, object]:
    found = {
        "id": "one", "repo": "owner/project", "path": "train.py", "parent": "HEAD~1", "commit": "HEAD",
        "kind": "sync-item", "before_spans": [[9, 9]], "after_spans": [[10, 10]], "why": "read each step",
    }  # fmt: skip
    return found | changes


def test_a_case_is_found_before_and_silent_after(
    history: ModuleType, mirrors: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trap = {key: value for key, value in case(id="two", lines=[10], why_kept="seldom").items() if key != "why"}
    history.score(tmp_path / "files", mirrors, [case()], [trap], "missed")
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| sync-item | 1 | 1.000 | 1.000 | 1.000 |",
        "| **all** | 1 | 1.000 | 1.000 | 1.000 |",
        "",
        "Traps: 1, silent 1.000",
    ]


def test_what_is_missed_and_noisy(
    history: ModuleType, mirrors: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The wrong way round: what is clean is said to be bad.
    wrong = case(parent="HEAD", commit="HEAD~1", before_spans=[[1, 2]], after_spans=[[9, 9]])
    history.score(tmp_path / "files", mirrors, [wrong], [], "noisy")
    out = capsys.readouterr().out
    assert "| **all** | 1 | 0.000 | 0.000 | 0.000 |" in out and out.endswith("one read each step\n")


def test_projects_that_are_not_there_are_named(
    history: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history.score(tmp_path / "files", tmp_path, [case()], [], None)
    printed = capsys.readouterr()
    assert "| **all** | 0 |" in printed.out and "no mirror of owner/project" in printed.err


def test_the_data_is_whole(history: ModuleType) -> None:
    cases, traps = history.read("cases.jsonl"), history.read("traps.jsonl")
    assert len(cases) == 119 and len(traps) == 27
    assert len({row["id"] for row in (*cases, *traps)}) == len(cases) + len(traps)
    assert all(row["before_spans"] and len(row["commit"]) == 40 for row in cases)
    assert not any("\n" in str(value) for row in cases for value in row.values()), "no code is kept"

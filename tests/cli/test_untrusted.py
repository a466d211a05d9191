"""Inputs that nobody trusts: settings, reports, names of files and compressed data of a foreign project."""

from __future__ import annotations

import json
import os
import zlib

import pytest

from perflint.engine.cache import pickles
from perflint.engine.workers import _safe_path
from tests.cli.command import Command

WAITS = "import torch\n\ndef step(x: torch.Tensor):\n    for _ in range(9):\n        print(x.cuda().item())\n"
MOVES = "\ndef make(x: torch.Tensor):\n    for _ in range(9):\n        x += torch.zeros(99, 99).to(device='cuda')\n"


@pytest.mark.parametrize("module", ["unittest", "unittest.__main__", "antigravity"])
def test_house_rules_are_no_modules_of_python(perflint: Command, module: str) -> None:
    (perflint.folder / "a.py").write_text(WAITS)
    (perflint.folder / "perflint.toml").write_text(f'house-rules = ["{module}"]\n')
    ran = perflint("check", ".")
    assert ran.code == 2 and f"`house-rules` names `{module}`, which is not installed" in ran.err


def test_merge_quotes_no_file_outside_of_the_project(
    perflint: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.mktemp("outside") / "secret.py"
    secret.write_text(WAITS.replace("range(9)", "range(12345)"))
    found = perflint("check", str(secret), "--output-format", "json").out
    (perflint.folder / "report.json").write_text(found)
    assert json.loads(found)["findings"]
    ran = perflint("merge", "report.json", "--output-format", "full")
    assert "12345" not in ran.out and "item" in ran.out


@pytest.mark.parametrize(
    "command",
    [
        ["check", ".", "--output-format=concise"], ["check", ".", "--output-format=grouped"],
        ["check", ".", "--output-format=full"], ["check", ".", "--output-format=markdown"],
        ["check", ".", "--show-files"], ["check", ".", "--verbose"],
        ["fix", "."], ["fix", ".", "--apply", "--show-fixes"], ["explain", "::stop-commands::x.py:5"],
    ],
)  # fmt: skip
def test_a_name_begins_no_line_as_a_command(perflint: Command, command: list[str]) -> None:
    """GitHub takes a line for a command though spaces stand before it."""
    for name in ("::stop-commands::x.py", "::add-mask::y.py"):
        (perflint.folder / name).write_text("".join(WAITS.replace("step", f"step{at}") for at in range(8)) + MOVES)
    ran = perflint(*command)
    assert "stop-commands" in ran.out + ran.err
    assert not [line for line in (ran.out + ran.err).splitlines() if line.lstrip().startswith("::")]


def test_a_value_of_the_cache_is_no_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickles, "_LARGEST", 1000)
    assert pickles.unpacked(zlib.compress(b"x" * 1000)) == b"x" * 1000
    for data in (zlib.compress(b"x" * 1001), zlib.compress(b"x")[:-2], b"x"):
        with pytest.raises(pickles.Damaged):
            pickles.unpacked(data)


def test_workers_search_no_modules_in_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    with _safe_path():
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert "PYTHONSAFEPATH" not in os.environ

"""Inputs that nobody trusts: settings, reports, names of files and compressed data of a foreign project."""

from __future__ import annotations

import json
import os
import sys
import zlib
from pathlib import Path

import pytest

from perflint.engine.cache import pickles
from perflint.engine.workers import _safe_path
from tests.cli.command import Command, python

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


PLANTED = sorted(
    {*sys.stdlib_module_names, "perflint", "libcst", "platformdirs", "torch", "numpy", "flake8", "pygls", "mcp"}
    | {"sitecustomize", "usercustomize", "conftest", "setup", "noxfile", "rules", "distributed", "nbformat", "shtab"}
)
COMMANDS = {"perflint": "perflint.cli.main", "flake8": "flake8.main.cli"}
"""The modules whose `main` the installed commands run."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which all modules and programs that perflint could meet leave a mark."""
    folder = tmp_path_factory.mktemp("planted") / "project"
    mark = f"open({str(folder / 'MARK')!r}, 'a').write(__name__ + chr(10))\n"
    for name in PLANTED:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(mark)
        (folder / f"{name}.py").write_text(mark)
    for name in ("git", "python", "python3", "sh", "env"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> '{folder}/MARK'\n")
        (folder / name).chmod(0o755)
    (folder / "train.py").write_text(f"{mark}{WAITS}")
    (folder / "pyproject.toml").write_text("[tool.perflint]\nhouse-rules = []\nbaseline = 'known.json'\n")
    (folder / "known.json").write_text('{"version": 1, "profile": "default", "findings": {}}')
    cell = {"cell_type": "code", "source": f"!touch {folder}/MARK\n%run train.py\n{mark}{WAITS}", "metadata": {}}
    (folder / "a.ipynb").write_text(json.dumps({"nbformat": 4, "metadata": {}, "cells": [cell]}))
    (folder.parent / "program.py").write_text("import json\n")
    for name, module in COMMANDS.items():
        (folder.parent / name).write_text(f"import sys\nfrom {module} import main\nsys.exit(main())\n")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["perflint", "check", "train.py", "a.ipynb"], ["perflint", "check", ".", "--jobs=2", "--no-cache"],
        ["perflint", "check", ".", "--since=HEAD"], ["perflint", "fix", "train.py", "a.ipynb"],
        ["perflint", "explain", "train.py:5"], ["perflint", "config"], ["perflint", "ci", "train.py"],
        ["perflint", "trace", "../program.py"], ["perflint", "lsp"], ["perflint", "mcp"], ["flake8", "train.py"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_nothing_of_a_project_runs(planted: Path, command: list[str]) -> None:
    path = os.pathsep.join(["", os.curdir, str(planted), os.environ["PATH"]])
    ran = python(f"../{command[0]}", *command[1:], cwd=planted, PATH=path, XDG_CACHE_HOME=str(planted.parent / "cache"))
    assert "Traceback" not in ran.err and "crashed" not in ran.err, ran.err
    assert not (planted / "MARK").exists(), (planted / "MARK").read_text()


@pytest.mark.parametrize("flags", [["-P"], ["-I"]])
def test_nothing_of_a_project_runs_as_a_module(planted: Path, flags: list[str]) -> None:
    ran = python(*flags, "-m", "perflint", "check", "train.py", "--no-cache", cwd=planted)
    assert ran.code == 1 and not (planted / "MARK").exists()


@pytest.mark.parametrize("flags", [[], ["-E"]])
def test_nothing_of_a_project_runs_in_new_processes(planted: Path, flags: list[str]) -> None:
    """A process with threads is not forked. Large files are shared among processes."""
    (planted.parent / "threads").write_text(
        "import sys, threading\nfrom perflint.cli.main import main\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\nif __name__ == '__main__':\n"
        "    sys.exit(main())\n"
    )
    folder = planted / "large"
    folder.mkdir(exist_ok=True)
    for at in range(3):
        (folder / f"large{at}.py").write_text(WAITS + "\n".join(f"x{n} = {n}  # {'y' * 60}" for n in range(600)))
    ran = python(*flags, "../threads", "check", "large", "--jobs=2", "--no-cache", cwd=planted)
    assert ran.code == 1 and "3 findings" in ran.out and not (planted / "MARK").exists(), ran


def test_workers_search_no_modules_in_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    with _safe_path():
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert "PYTHONSAFEPATH" not in os.environ


def test_modules_that_import_all_names_of_each_other(perflint: Command) -> None:
    count = 300
    for at in range(count):
        names = (f"m{(at + 1) % count}", f"m{(at * 7 + 3) % count}")
        lines = "".join(f"from {name} import *\n" for name in names)
        perflint.write(f"m{at}.py", f"{lines}v{at} = {at}\n")
    perflint.write("train.py", f"{WAITS}\nfrom m0 import *\n")
    ran = perflint("check", ".", "--no-cache", "--output-format=concise")
    assert ran.code == 1 and ran.out.count("train.py:5") == 1


@pytest.mark.parametrize(
    ("metadata", "is_python"),
    [
        ([], True), (None, True), (3, True), ({"kernelspec": 3}, True), ({"kernelspec": {"language": 3}}, True),
        ({"kernelspec": {"name": "\x1b[31m::error::" + "x" * 100_000}}, True), ({"language_info": []}, True),
        ({"language_info": {"name": None}}, True), ({"language_info": {"name": "PYTHON", "version": 3}}, True),
        ({"kernelspec": {"name": "xpython"}}, True), ({"language_info": {"name": "R"}}, False),
        ({"language_info": {"name": "julia"}, "kernelspec": {"language": "python"}}, False),
        ({"kernelspec": {"language": "\ud800"}}, False),
    ],
    ids=lambda value: ascii(value)[:40],
)  # fmt: skip
def test_metadata_of_notebooks(perflint: Command, metadata: object, is_python: bool) -> None:
    loop = "for x, y in loader:\n        loss = model(x.cuda()).sum()\n        loss.backward()\n"
    text = f"import torch\n\ndef train(model: torch.nn.Module, loader):\n    {loop}        print(loss.item())\n"
    cell = {"cell_type": "code", "source": text, "metadata": metadata}
    perflint.write("a.ipynb", json.dumps({"nbformat": 4, "metadata": metadata, "cells": [cell]}))
    ran = perflint("check", "a.ipynb", "--output-format=concise")
    assert (ran.code, ran.out.count("a.ipynb:cell 1:7")) == (is_python, is_python) and "crashed" not in ran.err

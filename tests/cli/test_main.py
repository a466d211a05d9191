"""The command around its verbs."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from pathlib import Path

import pytest

import perflint as package
from perflint.cli.main import VERBS
from tests.cli.command import ROOT, Command, python


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(perflint: Command, option: str) -> None:
    ran = perflint(option)
    assert (ran.code, ran.out, ran.err) == (0, f"perflint {package.__version__}\n", "")
    assert re.fullmatch(r"\d+\.\d+\.\d+", package.__version__)


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_names_every_verb(perflint: Command, option: str) -> None:
    ran = perflint(option)
    assert (ran.code, ran.err) == (0, "")
    for verb, what in VERBS.items():
        assert re.search(rf"^  {verb} +{re.escape(what)}", ran.out, re.MULTILINE)
    assert "Exit codes: 0 nothing found" in ran.out


def test_nothing_said(perflint: Command) -> None:
    ran = perflint()
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("usage: perflint ")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_a_module_with_help(perflint: Command, verb: str) -> None:
    module = importlib.import_module(f"perflint.cli.{verb}")
    ran = perflint(verb, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"usage: perflint {verb} ")
    assert module.__doc__ is not None and module.__doc__.split()[0] in ran.out


def test_habits_of_other_tools(perflint: Command) -> None:
    assert perflint("help", "check").out == perflint("check", "--help").out
    assert perflint("version").out == perflint("--version").out


def test_unknown_commands(perflint: Command) -> None:
    assert perflint("chek").err == "error: unknown command `chek`\n  help: did you mean `check`?\n"
    assert perflint("server").err == "error: unknown command `server`\n  help: `perflint lsp` serves editors\n"
    assert perflint("lint").err == "error: unknown command `lint`\n  help: `perflint check PATH`\n"
    for word in ("scan", "run", "list", "zzzzz"):
        expected = f"error: unknown command `{word}`\n  help: `perflint check PATH` checks files; "
        assert perflint(word).err.startswith(expected)
    perflint.write("src/a.py", "")
    missing = "error: the first argument must be a command\n  help: "
    ran = perflint("src")
    assert (ran.code, ran.err) == (2, f"{missing}`perflint check src`\n")
    assert perflint("--profile", "audit").err == f"{missing}`perflint check --profile audit`\n"
    assert perflint("check", "--version").err.endswith("help: `perflint --version`\n")
    assert perflint("rules", "TPF1").err.endswith("help: `perflint rule TPF1`\n")


def test_as_a_module() -> None:
    ran = python("-m", "perflint", "--version")
    assert (ran.code, ran.out.strip(), ran.err) == (0, f"perflint {package.__version__}", "")


def test_modules_of_the_working_directory_do_not_run(tmp_path: Path) -> None:
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "__main__.py").write_text("import sys\nprint(*sys.modules)\n")
    loaded = {name.partition(".")[0] for name in python("-m", "later", cwd=tmp_path).out.split()}
    for name in sys.stdlib_module_names | {"libcst", "torch", "numpy", "flake8"}:
        if name not in loaded | {"later"}:
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text("raise SystemExit('code of the checked folder ran')\n")
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["torch>=2.4"]\n')
    (tmp_path / "bad.py").write_text("import torch\n\nscaler = torch.cuda.amp.GradScaler()  # noqa: E501\n")
    for verb in ("check", "fix"):
        ran = python("-m", "perflint", verb, "bad.py", cwd=tmp_path)
        assert (ran.code, "TPF902" in ran.out) == (1, verb == "check"), ran.err


def test_the_distribution_says_what_there_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for target in (*project["scripts"].values(), *project["entry-points"]["flake8.extension"].values()):
        module, _, name = target.partition(":")
        assert hasattr(importlib.import_module(module), name)

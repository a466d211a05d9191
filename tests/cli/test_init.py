"""`perflint init` and `perflint completion`."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from perflint.cli.main import VERBS
from tests.cli.command import Command

pytestmark = pytest.mark.usefixtures("stated_torch")
BAD = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"


def test_settings_fit_the_project(perflint: Command) -> None:
    perflint.write("pyproject.toml", '[project]\nname = "x"\ndependencies = ["torch>=2.6"]')
    perflint.write("src/train.py", BAD + BAD * 11)
    perflint.write("src/x_pb2.py", BAD)
    perflint.write("third_party/a.py", BAD)
    perflint.write("tests/test_a.py", BAD)
    printed = perflint("init", "--print")
    assert printed.code == 0 and "tool" not in (perflint.folder / "pyproject.toml").read_text()
    ran = perflint("init")
    assert (ran.code, ran.err) == (0, "")
    text = (perflint.folder / "pyproject.toml").read_text()
    assert text.startswith('[project]\nname = "x"\ndependencies = ["torch>=2.6"]\n\n[tool.perflint]\n')
    assert printed.out in text
    assert tomllib.loads(text)["tool"]["perflint"] == {
        "extend-exclude": ["third_party", "*_pb2.py"],
        "per-file-ignores": {"tests/**": ["ALL"]},
    }
    assert "allows torch 2.6 and newer" in text
    assert "# `perflint baseline` writes the findings of today to a file" in text
    assert perflint("check", "--output-format=concise", "--profile=pedantic").out.count("TPF902") == 12
    ran = perflint("init")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "error: pyproject.toml already configures perflint")


def test_names_of_folders_are_no_patterns(perflint: Command) -> None:
    perflint.write("a[1]/vendor/a.py", BAD)
    perflint.write("!b/tests/test_a.py", BAD)
    assert perflint("init").code == 0
    settings = tomllib.loads((perflint.folder / "perflint.toml").read_text())
    assert settings == {
        "extend-exclude": ["a\\[1]/vendor"],
        "per-file-ignores": {"\\!b/tests/**": ["ALL"]},
    }
    ran = perflint("check")
    assert (ran.code, ran.out) == (0, "No findings in 1 file.\n")


def test_a_project_without_pyproject(perflint: Command) -> None:
    perflint.write("train.py", BAD)
    perflint.write("tests/test_a.py", BAD)
    assert perflint("init").code == 0
    settings = tomllib.loads((perflint.folder / "perflint.toml").read_text())
    assert settings == {"per-file-ignores": {"tests/**": ["ALL"]}}
    assert perflint("check", "--output-format=concise").out.count("TPF902") == 1


@pytest.mark.parametrize("project", [None, b'[project]\r\nname = "x"\r\n'])
@pytest.mark.parametrize("findings", [1, 12])
def test_the_baseline_is_used_once_it_is_written(perflint: Command, project: bytes | None, findings: int) -> None:
    if project is not None:
        perflint.write("pyproject.toml", project)
    perflint.write("train.py", BAD * findings)
    perflint.write("tests/test_a.py", BAD)
    perflint("init")
    name = "perflint.toml" if project is None else "pyproject.toml"
    before = (perflint.folder / name).read_bytes()
    ran = perflint("baseline")
    assert (ran.code, ran.err) == (0, "") and ran.out.endswith(f'{name}: baseline = "perflint-baseline.json"\n')
    assert (perflint.folder / name).read_bytes() == before.replace(b"\n# baseline = ", b"\nbaseline = ")
    assert perflint("check").code == 0


def test_a_text_that_looks_like_the_comment_stays(perflint: Command) -> None:
    line = '# baseline = "perflint-baseline.json"'
    text = f"[project]\ndescription = '''\n{line}\n'''\n[tool.perflint]\n  {line}\n"
    perflint.write("pyproject.toml", text)
    perflint.write("train.py", BAD)
    assert perflint("baseline").code == 0
    new = (perflint.folder / "pyproject.toml").read_text()
    assert new == text.replace(f"  {line}", f"  {line[2:]}")


@pytest.mark.parametrize("text", ["tool = {black = {}}\n", "tool = 1\n", "[project\n", "[project]\rname = 1\r"])
def test_a_file_that_cannot_take_the_table_stays(perflint: Command, text: str) -> None:
    perflint.write("pyproject.toml", text)
    perflint.write("train.py", BAD)
    ran = perflint("init")
    assert ran.code == 2 and "is not valid TOML with [tool.perflint] at its end" in ran.err
    assert (perflint.folder / "pyproject.toml").read_bytes() == text.encode()
    assert "crashed" not in perflint("baseline").err


def test_a_baseline_that_the_settings_do_not_mention(perflint: Command) -> None:
    perflint.write("train.py", BAD)
    moved = '[tool.perflint]\nprofile = "audit"\n[tool.other]\n# baseline = "perflint-baseline.json"\n'
    perflint.write("pyproject.toml", moved)
    assert (
        'help: `baseline = "perflint-baseline.json"` in [tool.perflint] of pyproject.toml, or `--baseline perf'
        in perflint("baseline").err
    )
    assert (perflint.folder / "pyproject.toml").read_text() == moved
    twice = moved.replace("# base", 'baseline = "a.json"\n# base')
    perflint.write("pyproject.toml", twice)
    (perflint.folder / "perflint-baseline.json").unlink()
    assert "does not use the baseline yet" in perflint("baseline").err
    assert (perflint.folder / "pyproject.toml").read_text() == twice
    perflint.write("pyproject.toml", moved.replace("[tool.other]\n", ""))
    assert "does not use the baseline yet" in perflint("baseline", "--baseline", "other.json").err


def test_keys_in_the_table_of_another_file(perflint: Command) -> None:
    perflint.write("train.py", BAD)
    perflint("init")
    perflint.write("perflint.toml", '[tool.perflint]\nbaseline = "a.json"\n')
    ran = perflint("check")
    assert ran.code == 2 and "perflint.toml:1: unknown key `tool`" in ran.err
    assert "help: in perflint.toml, keys stand at the top, without [tool.perflint]" in ran.err
    perflint.write("perflint.toml", "")
    assert "in perflint.toml, or `--baseline" in perflint("baseline").err


def test_an_empty_folder_and_line_ends(perflint: Command) -> None:
    perflint.write("pyproject.toml", b"[project]\r\nname = 'x'\r\n")
    assert perflint("init").code == 0
    data = (perflint.folder / "pyproject.toml").read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") and b"[tool.perflint]" in data
    assert perflint("init", "missing").code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(perflint: Command, shell: str) -> None:
    pytest.importorskip("shtab")
    ran = perflint("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert all(verb in ran.out for verb in VERBS)
    assert "output-format" in ran.out and "sarif" in ran.out


def test_bash_takes_the_completion(perflint: Command) -> None:
    pytest.importorskip("shtab")
    perflint.write("complete.sh", perflint("completion", "bash").out)
    script = (
        "source complete.sh; COMP_WORDS=(perflint check --output-format s); COMP_CWORD=3; "
        '"$(complete -p perflint | sed "s/.*-F \\([^ ]*\\).*/\\1/")"; echo "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(["bash", "-c", script], cwd=perflint.folder, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["sarif"]


def test_completion_without_the_library(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    ran = perflint("completion", "bash")
    assert ran.code == 2 and ran.err.startswith("error: completion needs shtab\n  help: `pip install shtab`")


def test_an_interrupted_run_changes_nothing(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    perflint.write("pyproject.toml", '[project]\nname = "x"  # mine\n')
    monkeypatch.setattr("os.replace", interrupted)
    assert perflint("init").code == 130
    assert (perflint.folder / "pyproject.toml").read_text() == '[project]\nname = "x"  # mine\n'
    assert not list(perflint.folder.glob("*.tmp")) and not list(perflint.folder.glob(".perflint*"))

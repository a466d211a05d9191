"""`perflint check`."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from perflint.cli.check import check_files
from perflint.findings import Report
from perflint.source.text import Source
from tests.cli.command import ROOT, Command, python
from tests.signals import HEED_INTERRUPTS

pytestmark = pytest.mark.usefixtures("stated_torch")
BAD = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"
CLEAN = "import torch\n\nscaler = torch.amp.GradScaler('cuda')\n"
PLACE = "3:10"


NEWER = '[project]\ndependencies = ["torch>=2.4"]\n'
"""Settings of a project whose torch has what the fix of BAD writes."""


def test_findings(perflint: Command) -> None:
    perflint.write("pyproject.toml", NEWER)
    perflint.write("src/a.py", BAD)
    perflint.write("src/b.py", CLEAN)
    ran = perflint("check", "src")
    assert ran.code == 1
    assert ran.err == ""
    lines = ran.out.splitlines()
    assert lines[0].startswith("warning[TPF902] [*] `torch.cuda.amp.GradScaler` is deprecated")
    assert lines[1] == f" --> {os.path.join('src', 'a.py')}:{PLACE}"
    assert lines[3:5] == ["3 | scaler = torch.cuda.amp.GradScaler()", "  |          " + "^" * 25 + " deprecated-amp"]
    assert "Found 1 finding in 2 files: 1 warning." in lines
    assert "[*] 1 fixable with `perflint fix --apply`." in lines


def test_clean(perflint: Command) -> None:
    perflint.write("a.py", CLEAN)
    ran = perflint("check", "a.py")
    assert (ran.code, ran.out, ran.err) == (0, "No findings in 1 file.\n", "")


def test_the_working_directory_is_the_default(perflint: Command) -> None:
    perflint.write("pyproject.toml", NEWER)
    perflint.write("p/a.py", BAD)
    assert perflint("check", "--output-format", "concise").out.startswith(f"p/a.py:{PLACE}: TPF902 [*] `torch")


def test_exit_zero_leaves_faults_alone(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    perflint.write("b.py", "if")
    assert perflint("check", "--exit-zero", "a.py").code == 0
    assert perflint("check", "--exit-zero", "a.py", "b.py").code == 2


def test_selection(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    for options in (
        ["--select", "TPF9"],
        ["--select", "deprecated-amp,TPF1"],
        ["--select=TPF1", "--select=TPF902"],
        ["--select", "TPF1", "--extend-select", "TPF9"],
        ["--ignore", "TPF1"],
        ["--torch-version", "2.4"],
        ["--torch-version", "2.9.1"],
    ):
        assert perflint("check", "a.py", *options).code == 1, options
    for options in (
        ["--select", "TPF1"],
        ["--ignore", "deprecated-amp"],
        ["--ignore", "ALL"],
        ["--torch-version", "2.3"],
    ):
        assert perflint("check", "a.py", *options).code == 0, options


def test_unknown_rules(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    ran = perflint("check", "a.py", "--select", "TPF90Z")
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith(
        "error: unknown rule `TPF90Z` in `select` of the command line\n  help: a code (TPF101), the beginning"
    )
    ran = perflint("check", "--ignore", "depracated-amp")
    assert ran.err.endswith("help: did you mean `deprecated-amp`?\n")


def test_profiles(perflint: Command) -> None:
    perflint.write(
        "a.py",
        "import torch\n\ndef f(model, loader):\n    model.eval()\n    with torch.no_grad():\n"
        "        for x in loader:\n            model(x)\n",
    )
    select = ["--select", "no-grad-instead-of-inference-mode"]
    ran = perflint("check", "a.py", *select)
    assert ran.code == 0
    assert "`--profile pedantic` would add 1." in ran.out
    assert perflint("check", "a.py", *select, "--profile", "pedantic").code == 1
    assert perflint("check", "a.py", *select, "--profile", "audit").code == 1
    assert "invalid choice: 'strict'" in perflint("check", "--profile", "strict").err


def test_pyproject(perflint: Command) -> None:
    perflint.write("pyproject.toml", '[tool.perflint]\nignore = ["TPF9"]\noutput-format = "concise"\n')
    perflint.write("src/a.py", BAD)
    assert perflint("check", "src").code == 0
    ran = perflint("check", "src", "--select", "TPF902")
    assert (ran.code, ran.out.splitlines()[0][:12]) == (1, "src/a.py:3:1")
    assert perflint("check", "src", "--extend-select", "TPF902").code == 1
    assert perflint("check", "src", "--isolated", "--torch-version=2.6").code == 1
    assert perflint("check", "src", "--extend-select", "TPF9", "--output-format", "full").out.startswith("warning[")


def test_pyproject_with_a_fault(perflint: Command) -> None:
    perflint.write("pyproject.toml", '[tool.perflint]\nignor = ["TPF9"]\n')
    perflint.write("a.py", BAD)
    ran = perflint("check", "a.py")
    file = perflint.folder / "pyproject.toml"
    assert ran.code == 2
    assert ran.err == f"error: {file}:2: unknown key `ignor` in [tool.perflint]\n  help: did you mean `ignore`?\n"
    assert perflint("check", "a.py", "--isolated", "--torch-version=2.6").code == 1
    perflint.write("pyproject.toml", "[tool.perflint]\nignor = []\nselect = 3\n")
    first, second = (line for line in perflint("check").err.splitlines() if line.startswith("error"))
    assert f"{file}:2: unknown key" in first and f"{file}:3: `select`" in second
    perflint.write("pyproject.toml", '[tool.perflint]\nignore = ["TPF0"]\nper-file-ignores = { "a" = ["no"] }\n')
    said = perflint("check").err
    assert f"unknown rule `no` in `per-file-ignores` of {file}:3 for" in said and f"`ignore` of {file}:2\n" in said


@pytest.mark.parametrize("option", ["--exclude", "--extend-exclude"])
def test_patterns_that_are_none(perflint: Command, option: str) -> None:
    ran = perflint("check", option, "gen,a[", ".")
    assert (ran.code, ran.out) == (2, "")
    assert f"error: argument {option}: `a[` is not a pattern of paths: a `[` without `]`" in ran.err


def test_per_file_ignores_and_excludes(perflint: Command) -> None:
    perflint.write(
        "pyproject.toml",
        '[tool.perflint]\nextend-exclude = ["gen"]\n[tool.perflint.per-file-ignores]\n"tests/*" = ["TPF9"]\n',
    )
    for name in ("src/a.py", "src/gen/b.py", "tests/c.py", "build/d.py"):
        perflint.write(name, BAD)
    found = re.compile(r"^(\S+):3:10: TPF902", re.MULTILINE)

    def paths(*options: str) -> list[str]:
        return found.findall(perflint("check", "--output-format", "concise", *options).out)

    assert paths() == ["src/a.py"]
    assert paths("--exclude", "src") == ["build/d.py"]
    assert paths("--extend-exclude", "src,other") == []
    assert paths("src/gen/b.py", "build/d.py") == ["src/gen/b.py", "build/d.py"]
    assert paths("--force-exclude", "src/gen/b.py", "build/d.py", "src/a.py") == ["src/a.py"]


def test_suppressions(perflint: Command) -> None:
    perflint.write("a.py", BAD.replace("()\n", "()  # perflint: ignore[deprecated-amp] old torch\n"))
    ran = perflint("check", "a.py")
    assert (ran.code, ran.out) == (0, "No findings in 1 file.\n1 silenced by comments.\n")


def test_standard_input(perflint: Command) -> None:
    ran = perflint("check", "-", "--output-format", "concise", stdin=BAD.encode())
    assert (ran.code, ran.out[:15]) == (1, "-:3:10: TPF902 ")
    ran = perflint("check", "-", "--stdin-filename", "src/a.py", "--output-format", "concise", stdin=BAD.encode())
    assert (ran.code, ran.out[:16]) == (1, "src/a.py:3:10: T")


def test_standard_input_follows_the_settings_of_its_name(perflint: Command) -> None:
    perflint.write("p/requirements.txt", "torch>=2.6\n")
    perflint.write("p/pyproject.toml", '[tool.perflint]\n[tool.perflint.per-file-ignores]\n"a.py" = ["ALL"]\n')
    assert perflint("check", "-", "--stdin-filename", "p/a.py", stdin=BAD.encode()).code == 0
    assert perflint("check", "-", "--stdin-filename", "p/b.py", stdin=BAD.encode()).code == 1
    assert perflint("check", "-", "--stdin-filename", "build/b.py", stdin=BAD.encode()).code == 1
    assert perflint("check", "-", "--stdin-filename", "build/b.py", "--force-exclude", stdin=BAD.encode()).code == 0


def test_standard_input_stands_alone(perflint: Command) -> None:
    assert perflint("check", "-", "a.py").err.startswith("error: `-` cannot stand beside other paths\n")
    ran = perflint("check", "--stdin-filename", "a.py")
    assert (ran.code, ran.err[:40]) == (2, "error: `--stdin-filename` needs `-`\n  he"[:40])


def test_bad_files_do_not_stop_the_others(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    perflint.write("b.py", "x = (\n")
    perflint.write("c.py", b"x = '\xff'\n")
    perflint.write("d.py", b"x = 1\0")
    ran = perflint("check", "a.py", "b.py", "missing.py", "c.py", "d.py", "--output-format", "concise")
    assert ran.code == 2
    assert len(ran.out.splitlines()) == 1
    assert "Found 1 finding in 1 file: 1 warning." in ran.err.splitlines()
    errors = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    assert errors[0] == "error: missing.py: no such file or folder"
    assert errors[1].startswith("error: b.py:1:5: syntax error: '(' was never closed")
    assert errors[2] == "error: c.py:1: not UTF-8: byte 0xff: invalid start byte"
    assert errors[3].startswith("error: d.py")
    assert len(errors) == 4
    assert ran.err.count("  help: ") == 3


def test_an_empty_folder(perflint: Command) -> None:
    (perflint.folder / "empty").mkdir()
    ran = perflint("check", "empty")
    assert ran.code == 0
    assert ran.err.startswith("warning: no Python files in empty\n  help: only *.py and *.ipynb files")
    assert ran.out == "No findings in 0 files.\n"


def test_json(perflint: Command) -> None:
    perflint.write("pyproject.toml", NEWER)
    perflint.write("src/a.py", BAD)
    perflint.write("src/b.py", "if")
    ran = perflint("check", "src", "missing", "--output-format", "json")
    assert ran.code == 2
    document: Any = json.loads(ran.out)
    jsonschema.validate(document, json.loads((ROOT / "docs" / "json-schema.json").read_text()))
    (finding,) = document["findings"]
    assert (finding["path"], finding["line"], finding["column"]) == ("src/a.py", 3, 10)
    assert (finding["end_line"], finding["end_column"], finding["code"]) == (3, 35, "TPF902")
    assert finding["fix"]["safety"] == "safe"
    assert [error["path"] for error in document["errors"]] == ["missing", "src/b.py"]
    assert document["summary"]["files"] == 1


def test_statistics(perflint: Command) -> None:
    perflint.write("pyproject.toml", NEWER)
    perflint.write("a.py", BAD + "other = torch.cuda.amp.GradScaler()\n")
    ran = perflint("check", "a.py", "--statistics", "--profile=pedantic")
    assert ran.code == 1
    assert ran.out.splitlines()[:3] == [
        "2  TPF902  [*]  deprecated-amp",
        "",
        "Found 2 findings in 1 file: 1 warning, 1 info.",
    ]


def test_colours(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    perflint.write("a.py", BAD)
    assert "\x1b[" not in perflint("check", "a.py", "missing.py").out
    ran = perflint("check", "a.py", "missing.py", "--color", "always")
    assert "\x1b[" in ran.out and "\x1b[" in ran.err
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in perflint("check", "a.py").out
    assert "\x1b[" not in perflint("check", "a.py", "--color", "never").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in perflint("check", "a.py").out


def test_the_cache(perflint: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    perflint.write("src/a.py", BAD)
    monkeypatch.delenv("PERFLINT_NO_CACHE", raising=False)
    monkeypatch.setenv("PERFLINT_CACHE_DIR", str(tmp_path / "cache"))
    plain = perflint("check", "src", "--no-cache")
    assert not (tmp_path / "cache").exists()
    for verb in (("check", "src"), ("fix", "src"), ("explain", "src/a.py:1"), ("check", "src")):
        perflint(*verb)
    assert len(list((tmp_path / "cache").glob("*/*.sqlite"))) == 1
    assert perflint("check", "src") == plain
    (other,) = (tmp_path / "cache").glob("*/*.sqlite")
    other = other.with_name("other-0123456789abcdef-0123456789abcdef.sqlite")
    other.touch()
    assert "removed 1 file about this project" in perflint("clean").err
    assert list((tmp_path / "cache").glob("*/*.sqlite")) == [other]
    assert "removed the results of 1 project" in perflint("clean", "--all").err
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("jobs", ["0", "-1", "many", "9999"])
def test_a_number_of_processes_that_is_none(jobs: str, perflint: Command) -> None:
    ran = perflint("check", "--jobs", jobs)
    assert ran.code == 2 and "number of processes" in ran.err


def test_an_empty_selection_is_not_silent(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    ran = perflint("check", "a.py", "--select", "")
    assert ran.code == 2 and "`--select` names no rule" in ran.err
    for verb in ("check", "fix"):
        ran = perflint(verb, "a.py", "--select", "TPF902", "--ignore", "TPF902")
        assert ran.code == 0 and ran.err.startswith("warning: no rule is selected\n")


def test_rules_that_do_not_hold_for_the_torch_of_the_project(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    perflint.write("requirements.txt", "torch==1.5\n")
    for verb in ("check", "fix"):
        ran = perflint(verb, "a.py", "--select", "TPF902")
        assert ran.code == 0 and ran.err.startswith("warning: no selected rule holds for torch 1.5\n  help: `perflint")
        # Requirements are files of the project, too.
        assert perflint(verb, "a.py", "--select", "TPF902", "--isolated", "--profile=pedantic").code == 1
    ran = perflint("check", "a.py", "--select", "TPF902", "--ignore", "TPF902")
    assert ran.err.startswith("warning: no rule is selected\n")


def test_files_of_other_kinds_are_refused(perflint: Command) -> None:
    for name in ("a.json", "a.txt"):
        perflint.write(f"docs/{name}", "{}")
        ran = perflint("check", f"docs/{name}")
        assert ran.code == 2 and f"error: docs/{name}: " in ran.err and "help: " in ran.err
    perflint.write("script", CLEAN)
    assert perflint("check", "script").code == 0


HABITS = {
    ("check", "--fix"): "`perflint fix --apply PATH` writes fixes",
    ("check", "--format=json"): "`--output-format FORMAT`",
    ("check", "--outputformat", "json"): "did you mean `--output-format`?",
    ("check", "--nonsense"): "`perflint check --help`",
    ("check", "--diff"): "`perflint fix PATH` prints a diff",
    ("check", "--ignore-noqa"): "`--no-ignores` shows what comments silence",
    ("check", "--add-noqa"): "`perflint check --add-ignore` writes comments",
    ("check", "--no-respect-gitignore"): "a file that is named is checked, whatever .gitignore says",
    ("check", "--unfixable=TPF1"): "`perflint fix` takes it",
    ("check", "--exit-non-zero-on-fix"): "`perflint fix` takes it",
    ("fix", "--statistics"): "`perflint check` takes it",
    ("check", "--strict"): "`perflint check --help`",
    ("check", "-w"): "`--watch`",
    ("check", "-s"): "`--quiet --output-file FILE` prints errors only",
    # Abbreviations that are clear, of two options, and of too many.
    ("check", "--profil", "audit"): "did you mean `--profile`?",
    ("fix", "--sel=TPF1"): "did you mean `--select`?",
    ("baseline", "--bas", "x.json"): "did you mean `--baseline`?",
    ("check", "--out", "x"): "did you mean `--output-format` or `--output-file`?",
    ("check", "--e"): "`perflint check --help`",
}


@pytest.mark.parametrize("arguments", HABITS)
def test_faults_of_usage_are_one_line_with_a_way_out(perflint: Command, arguments: tuple[str, ...]) -> None:
    ran = perflint(*arguments)
    assert ran.code == 2 and ran.out == ""
    message, help = ran.err.splitlines()
    assert message.startswith("error: unrecognized arguments: ") and help == f"  help: {HABITS[arguments]}"


def test_formats_of_other_tools(perflint: Command) -> None:
    ran = perflint("check", "--output-format=json-lines")
    assert ran.code == 2 and ran.err.endswith("\n  help: `jsonl`\n")
    assert perflint("check", "--output-format=xml").err.endswith("\n  help: `perflint check --help`\n")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("check", "--output-format=sarff"), "sarif"),
        (("check", "--profile=pedant"), "pedantic"),
        (("check", "--min-severity=warn"), "warning"),
        (("completion", "bsh"), "bash"),
    ],
)
def test_misspelt_choices(perflint: Command, arguments: tuple[str, ...], meant: str) -> None:
    ran = perflint(*arguments)
    assert ran.code == 2 and ran.err.endswith(f"\n  help: did you mean `{meant}`?\n")


def test_rules_of_a_file_are_turned_off_on_the_command_line(perflint: Command) -> None:
    for folder in ("tests", "src", "tools"):
        perflint.write(f"{folder}/a.py", BAD)
    perflint.write("perflint.toml", 'per-file-ignores = { "tests/**" = ["TPF902"] }\n')
    ran = perflint("check", "--output-format=concise", "--config", 'per-file-ignores={"src/*"=["TPF9"]}')
    assert [line.partition(":")[0] for line in ran.out.splitlines()] == ["tools/a.py"]


@pytest.mark.parametrize("version", ["2", "two", "2.x"])
def test_a_torch_version_that_is_none(perflint: Command, version: str) -> None:
    ran = perflint("check", "--torch-version", version)
    assert ran.code == 2
    assert f"`{version}` is not a torch version" in ran.err


def test_unknown_options(perflint: Command) -> None:
    ran = perflint("check", "--selct", "TPF1")
    assert (ran.code, ran.out) == (2, "")
    assert "unrecognized arguments: --selct" in ran.err


def test_a_crash_of_perflint_is_reported(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> object:
        raise AttributeError("oh no")

    perflint.write("a.py", BAD)
    monkeypatch.setattr("perflint.cli.check.check_files", fail)
    ran = perflint("check", "a.py")
    assert ran.code == 2
    assert ran.err.startswith("error: perflint crashed: AttributeError: oh no (test_check.py:")
    assert "please report this" in ran.err


def test_an_interrupt(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> object:
        raise KeyboardInterrupt

    perflint.write("a.py", BAD)
    monkeypatch.setattr("perflint.cli.check.check_files", interrupt)
    ran = perflint("check", "a.py")
    assert (ran.code, ran.err) == (130, "")


def test_findings_come_as_they_are_found(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def watched(*arguments: Any) -> Any:
        part: tuple[Source, Report]
        for part in check_files(*arguments):
            yield part
            seen.append(sys.stdout.getvalue())  # type: ignore[attr-defined]

    perflint.write("a.py", BAD)
    perflint.write("b.py", BAD)
    monkeypatch.setattr("perflint.cli.check.check_files", watched)
    perflint("check", "a.py", "b.py", "--output-format", "concise")
    assert ["a.py" in text and "b.py" not in text for text in seen] == [True, False]


@pytest.mark.skipif(os.name == "nt", reason="signals and pipes of POSIX")
class TestProcesses:
    """What only a process of its own shows."""

    def test_a_reader_that_goes_away(self, tmp_path: Path) -> None:
        (tmp_path / "a.py").write_text("import torch\n" + "torch.cuda.amp.GradScaler()\n" * 3000)
        # More than a pipe holds, so that perflint still writes when the reader is gone.
        process = subprocess.Popen(
            [sys.executable, "-m", "perflint", "check", "--output-format", "concise", "--profile=audit", "a.py"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(60) == 141

    def test_ctrl_c(self, tmp_path: Path) -> None:
        script = "import perflint.cli.check as c, sys, time\nfrom perflint.cli.main import main\n"
        script += "c.check_files = lambda *_: (print('ready', flush=True), time.sleep(60))\nsys.exit(main(['check']))\n"
        (tmp_path / "a.py").write_text(BAD)
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            preexec_fn=HEED_INTERRUPTS,
        )
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b""
        process.stdout.close()
        process.stderr.close()

    def test_an_encoding_that_cannot_show_everything(self, tmp_path: Path) -> None:
        (tmp_path / "größe.py").write_text(BAD.replace("scaler", "größe"), encoding="utf-8")
        ran = python("-m", "perflint", "check", ".", cwd=tmp_path, PYTHONIOENCODING="ascii")
        assert ran.code == 1
        assert "gr\\xf6\\xdfe.py:3:" in ran.out
        assert ran.err == ""

    def test_paths_that_are_no_utf8(self, tmp_path: Path) -> None:
        try:
            (tmp_path / "a\udcff.py").write_text(BAD)
        except OSError:
            pytest.skip("the file system takes UTF-8 only")
        ran = python("-m", "perflint", "check", ".", "--output-format", "concise", cwd=tmp_path)
        assert ran.code == 1 and ran.err.startswith("Found 1 finding")
        ran = python("-m", "perflint", "check", ".", "--output-format", "json", cwd=tmp_path)
        assert json.loads(ran.out)["findings"][0]["path"] == "a\udcff.py"

    def test_warnings_about_linted_code_are_not_shown(self, tmp_path: Path) -> None:
        (tmp_path / "a.py").write_text("x = '\\d'\nif 1 is 1: pass\nassert (x, 'y')\n")
        ran = python("-W", "default", "-m", "perflint", "check", "a.py", cwd=tmp_path)
        assert (ran.code, ran.err) == (0, "")


def test_an_import_whose_name_is_too_long_for_a_file(perflint: Command) -> None:
    name = "a" * 300
    perflint.write("a.py", f"import torch\nfrom {name} import q\nx = q()\nfor i in range(3):\n    y = x[i]\n{BAD}")
    ran = perflint("check", "--profile", "audit", "a.py")
    assert (ran.code, ran.err) == (1, "")


@pytest.mark.skipif(os.name == "nt" or shutil.which("setpriv") is None, reason="needs setpriv")
@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_folders_that_may_not_be_entered(perflint: Command, mode: int) -> None:
    perflint.write("a.py", f"import torch\nfrom p import q\nx = q()\nfor i in range(3):\n    y = x[i]\n{BAD}")
    perflint.write("p/b.py", CLEAN)
    (perflint.folder / "p").chmod(mode)
    powerless = ["--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-dac_override,-dac_read_search"]
    command = [*(powerless if os.geteuid() == 0 else []), sys.executable, "-P", "-m", "perflint", "check", "."]
    try:
        ran = subprocess.run(
            ["setpriv", *command], env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
        )
    finally:
        (perflint.folder / "p").chmod(0o755)
    told = "p/b.py: cannot be read" if mode else "p: cannot search the folder"
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"error: {told}: Permission denied\n") and "crashed" not in ran.stderr
    assert "TPF902" in ran.stdout


def test_shards_are_the_whole(perflint: Command) -> None:
    for number in range(5):
        perflint.write(f"src/{number}.py", BAD)
    parts = [perflint("check", "src", "--output-format", "concise", "--shard", f"{part}/3").out for part in (1, 2, 3)]
    places = [line.partition(" ")[0] for part in parts for line in part.splitlines() if line.startswith("src")]
    whole = perflint("check", "src", "--output-format", "concise").out.splitlines()
    assert sorted(places) == sorted(line.partition(" ")[0] for line in whole if line.startswith("src"))
    assert len(places) == 5 and all(parts)
    assert perflint("check", "--shard", "4/3").code == 2


def test_timings(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    ran = perflint("check", "a.py", "--timings")
    assert ran.out == perflint("check", "a.py").out
    times = {line.split()[0]: float(line.split()[1]) for line in ran.err.splitlines() if line.endswith(" ms")}
    assert {"parsing", "inference", "reasons", "rules", "TPF501"} <= times.keys()
    assert times["rules"] == pytest.approx(sum(each for name, each in times.items() if name[:3] == "TPF"), abs=0.5)

"""`perflint fix`, with toy rules that look for words, and with real ones from end to end."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perflint.cli import fix
from perflint.cli.main import main
from perflint.engine import file as checking
from perflint.engine import workers
from perflint.engine.active import active_rules
from perflint.findings import Edit, Effect, Finding, Fix, Heat, Report, Safety, Severity, Span
from perflint.fixes import write
from perflint.rules.base import Calls, Rule
from perflint.rules.registry import RuleSet
from perflint.semantics.project import Project
from perflint.semantics.sites import CallSite, FileSite
from perflint.semantics.values import Device
from perflint.source.text import Source


class Toy(Rule):
    """Finds a word and replaces it."""

    effect, severity, listens = Effect.SYNC, Severity.WARNING, (FileSite,)
    new = ""
    safety = Safety.SAFE

    def check(self, site: FileSite) -> Iterator[Finding]:
        for number, line in enumerate(site.model.source.lines, 1):
            for match in re.finditer(rf"\b{self.name}\b", line):
                span = Span(number, match.start() + 1, number, match.end() + 1)
                fix = Fix("f", self.safety, (Edit(span, self.new),)) if self.new else None
                yield self.finding(site, f"`{self.name}`", span=span, heat=Heat.HOT, fix=fix)


class Old(Toy):
    code, name, new = "TPF001", "old", "new"


class Wild(Toy):
    code, name, new, safety = "TPF002", "wild", "calm", Safety.UNSAFE


class Lossy(Toy):
    code, name, new, safety = "TPF008", "lossy", "kept", Safety.RISKY


class Plain(Toy):
    code, name = "TPF003", "plain"


class Broken(Toy):
    code, name, new = "TPF004", "broken", "if"


class Crashing(Toy):
    code, name, new = "TPF005", "fragile", "crash"

    def check(self, site: FileSite) -> Iterator[Finding]:
        assert "crash" not in site.model.source.text, "on purpose"
        yield from super().check(site)


class Shown(Rule):
    """Finds tensors of the device that are printed."""

    code, name = "TPF006", "shown"
    effect, severity, listens = Effect.SYNC, Severity.WARNING, (Calls("builtins.print"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        tensor = site.value(site.node.args[0]).tensor
        if tensor is not None and tensor.device is Device.CUDA:
            yield self.finding(site, "shown", heat=Heat.HOT)


class Moved(Toy):
    code, name, new = "TPF007", "cpu", "cuda"


class Short(Toy):
    code, name, new = "TPF009", "short", "much_longer_than_it_was"


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    rules = RuleSet([Old(), Wild(), Lossy(), Plain(), Broken(), Crashing(), Shown(), Moved(), Short()])
    monkeypatch.setattr(fix, "active_rules", lambda settings: rules)


def run(*arguments: str) -> int:
    return main(["fix", "--color", "never", *arguments])


def put(name: str, text: str | bytes) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_diff_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    file = put("src/a.py", "a = 1\nx = old\n")
    assert run("src") == 1
    out, err = capsys.readouterr()
    assert out == "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n a = 1\n-x = old\n+x = new\n"
    assert err == "Would fix 1 finding in 1 file.\n"
    assert file.read_text() == "a = 1\nx = old\n"


def test_apply(capsys: pytest.CaptureFixture[str]) -> None:
    file = put("a.py", "x = old\n")
    assert run("a.py", "--apply") == 0
    assert capsys.readouterr() == ("", "Fixed 1 finding in 1 file.\n")
    assert file.read_text() == "x = new\n"
    assert run("a.py", "--apply") == 0
    assert capsys.readouterr() == ("", "Nothing to fix.\n")


def test_the_rules_of_fixes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    put("a.py", "x = old\ny = old\nz = wild\n")
    put("b.py", "x = plain\n")
    assert run("a.py", "b.py", "--apply", "--unsafe-fixes", "--show-fixes") == 1
    assert capsys.readouterr().err.splitlines()[0] == "a.py: TPF001 old × 2, TPF002 wild × 1"


@pytest.mark.parametrize("apply", [True, False])
def test_exit_code_of_what_remains(apply: bool, capsys: pytest.CaptureFixture[str]) -> None:
    put("a.py", "x = plain\n")
    flags = ["--apply"] if apply else []
    assert run("a.py", *flags) == 1
    assert capsys.readouterr().err == "Nothing to fix. 1 finding left.\n"
    assert run("a.py", "--exit-zero", *flags) == 0


def test_unsafe_fixes_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    file = put("a.py", "x = old + wild + plain\n")
    assert run("a.py", "--apply") == 1
    assert capsys.readouterr().err == "Fixed 1 finding in 1 file. 1 more with `--unsafe-fixes`. 1 finding left.\n"
    assert file.read_text() == "x = new + wild + plain\n"
    assert run("a.py", "--apply", "--unsafe-fixes") == 1
    assert file.read_text() == "x = new + calm + plain\n"


def test_risky_fixes_are_asked_for_apart(capsys: pytest.CaptureFixture[str]) -> None:
    file = put("a.py", "x = old + wild + lossy + lossy + plain\n")
    assert run("a.py", "--apply") == 1
    told = "Fixed 1 finding in 1 file. 1 more with `--unsafe-fixes`, 2 with `--risky-fixes`. 1 finding left.\n"
    assert capsys.readouterr().err == told
    assert run("a.py", "--apply", "--unsafe-fixes") == 1
    told = "Fixed 1 finding in 1 file. 2 more with `--risky-fixes`. 1 finding left.\n"
    assert capsys.readouterr().err == told
    assert file.read_text() == "x = new + calm + lossy + lossy + plain\n"
    assert run("a.py", "--apply", "--risky-fixes") == 1
    assert capsys.readouterr().err == "Fixed 2 findings in 1 file. 1 finding left.\n"
    assert file.read_text() == "x = new + calm + kept + kept + plain\n"


def test_risky_fixes_include_the_unsafe_ones() -> None:
    file = put("a.py", "x = old + wild + lossy\n")
    assert run("a.py", "--apply", "--risky-fixes") == 0
    assert file.read_text() == "x = new + calm + kept\n"


@pytest.mark.parametrize(("length", "isolated", "broken"), [(72, False, True), (73, False, False), (72, True, False)])
def test_lines_are_broken_at_the_length_of_the_formatter(length: int, isolated: bool, broken: bool) -> None:
    put("pyproject.toml", f"[tool.black]\nline-length = {length}\n")
    file = put("src/a.py", "x = f(short, abcdefghijklmnopqrstuvwxyz, device=device)\n")
    assert run("src", "--apply", *(["--isolated"] if isolated else [])) == 0
    line = f"{Short.new}, abcdefghijklmnopqrstuvwxyz, device=device"
    assert file.read_text() == (f"x = f(\n    {line}\n)\n" if broken else f"x = f({line})\n")


def test_what_was_left_out_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    file = put("a.py", "x = broken; y = old\n")
    assert run("a.py", "--apply") == 1
    assert "a.py:1:5: TPF004 was not fixed: it would leave invalid Python" in capsys.readouterr().err
    assert file.read_text() == "x = broken; y = new\n"


def test_a_fix_after_which_a_rule_crashes_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    file = put("a.py", "x = fragile; y = old\n")
    assert run("a.py", "--apply") == 1
    assert "TPF005 was not fixed: perflint cannot check what it would leave" in capsys.readouterr().err
    assert file.read_text() == "x = fragile; y = new\n"


def test_a_fix_is_judged_by_what_the_new_text_means(capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        'import torch\n\n\ndef make():\n    return torch.zeros(2, device="cpu")\n\n\ndef show():\n    print(make())\n'
    )
    file = put("a.py", text)
    assert run("a.py", "--apply") == 1
    assert "TPF007 was not fixed: it would bring TPF006" in capsys.readouterr().err
    file.write_text(text.replace("print(make())", "make()"))
    assert run("a.py", "--apply") == 0
    assert 'device="cuda"' in file.read_text()


def test_a_crash_on_the_file_itself_is_a_fault_and_the_rest_is_fixed(capsys: pytest.CaptureFixture[str]) -> None:
    file = put("a.py", "x = crash; y = old\n")
    assert run("a.py", "--apply") == 2
    assert "rule TPF005 (fragile) crashed" in capsys.readouterr().err
    assert file.read_text() == "x = crash; y = new\n"


def test_bad_files_do_not_stop_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    put("bad.py", "def f(:\n")
    put("bytes.py", b"x = old # \xff\n")
    file = put("good.py", "x = old\n")
    assert run(".", "missing.py", "--apply") == 2
    err = capsys.readouterr().err
    for name in ("bad.py:1:7: syntax error", "bytes.py:1: not UTF-8", "missing.py: no such file"):
        assert name in err
    assert file.read_text() == "x = new\n"
    assert Path("bytes.py").read_bytes() == b"x = old # \xff\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"x = old\r\ny = 1\r\n", b"x = new\r\ny = 1\r\n"),
        (b"\xef\xbb\xbfx = old\n", b"\xef\xbb\xbfx = new\n"),
        (b"# coding: latin-1\nx = old  # \xe9\n", b"# coding: latin-1\nx = new  # \xe9\n"),
        ("s = 'é'; x = old".encode(), "s = 'é'; x = new".encode()),
        (b"if x:\n\ty = old\n", b"if x:\n\ty = new\n"),
        (b"s = '\x0c'; x = old\n\x0cy = 1\n", b"s = '\x0c'; x = new\n\x0cy = 1\n"),
        (b"x = old\ry = 1\r", b"x = new\ry = 1\r"),
    ],
)
def test_all_else_is_kept_byte_for_byte(before: bytes, after: bytes) -> None:
    file = put("a.py", before)
    assert run("a.py", "--apply") == 0
    assert file.read_bytes() == after


def test_what_the_encoding_cannot_hold_is_not_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Old, "new", "größe")
    file = put("a.py", "# coding: ascii\nx = old\n")
    assert run("a.py", "--apply") == 2
    told = capsys.readouterr().err
    assert "cannot be written as ascii" in told and told.endswith("Fixed nothing. 1 finding left.\n")
    assert file.read_text() == "# coding: ascii\nx = old\n"


def test_a_file_that_changes_meanwhile_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, other = put("a.py", "x = old\n"), put("b.py", "x = old\n")
    dress = write._dress
    meddled: list[str] = []

    def meddle(temporary: str, status: os.stat_result) -> None:
        if not meddled:
            file.write_text("x = theirs\n")
        meddled.append(temporary)
        dress(temporary, status)

    monkeypatch.setattr(write, "_dress", meddle)
    assert run("a.py", "b.py", "--apply") == 2
    err = capsys.readouterr().err
    assert "a.py changed while it was being fixed; it was left as it is" in err
    assert "Fixed 1 finding in 1 file." in err
    assert (file.read_text(), other.read_text()) == ("x = theirs\n", "x = new\n")


def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    file = put("a.py", "x = old\n")

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(write, "beside", refuse)
    assert run("a.py", "--apply") == 2
    assert "a.py: cannot be written: Permission denied" in capsys.readouterr().err
    assert file.read_text() == "x = old\n"


def test_links_that_lead_out_of_the_folder_are_not_followed(
    capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    victim = tmp_path_factory.mktemp("elsewhere") / "victim.py"
    victim.write_text("x = old\n")
    inner = put("p/sub/inner.py", "x = old\n")
    Path("p/link.py").symlink_to(victim)
    Path("p/inside.py").symlink_to(Path("sub/inner.py"))
    assert run("p", "--apply") == 0
    err = capsys.readouterr().err
    assert f"warning: p/link.py leads to {os.path.realpath(victim)}, outside of the folder to fix" in err
    assert "Fixed 1 finding in 1 file." in err
    assert (victim.read_text(), inner.read_text()) == ("x = old\n", "x = new\n")
    assert run("p") == 0
    assert "victim" not in capsys.readouterr().out
    # Whoever names a link means what it leads to.
    assert run("p", "p/link.py", "--apply") == 0
    assert victim.read_text() == "x = new\n"


def test_long_names(capsys: pytest.CaptureFixture[str]) -> None:
    file = put("a" * 252 + ".py", "x = old\n")
    assert run(".", "--apply") == 0
    assert file.read_text() == "x = new\n"


def test_nothing_is_written_without_need() -> None:
    file = put("a.py", "x = plain\n")
    os.utime(file, ns=(1, 1))
    assert run("a.py", "--apply") == 1
    assert file.stat().st_mtime_ns == 1


def test_an_empty_folder(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    assert run("empty") == 0
    assert "no Python files in empty" in capsys.readouterr().err


@pytest.mark.parametrize("program", ["git", "patch"])
def test_the_diff_can_be_applied(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    texts = {
        "a.py": "x = old",
        'ü\\b"c\td.py': "# \x1b[2J\x85\u202e\nx = old\t+ y\n",
        "x\n--- a/victim\n+++ b/victim\n@@ -1 +1 @@\n-safe\n+EVIL\n.py": "x = old\n",
        os.fsdecode(b"\xff\x1b.py"): "x = old\n",
        "b.py": "x = old\r\ny = plain\r\n",
        "sub/c d.py": "".join(f"x{n} = {n}\n" for n in range(30)) + "é = old\n",
        "d.py": "y = 1\n",
    }
    for name, text in texts.items():
        put(name, text)
    assert run(".") == 1
    diff = capsys.readouterr().out
    Path("all.diff").write_bytes(diff.encode())
    if program == "git":
        subprocess.run(["git", "init", "-q", "."], check=True)
        subprocess.run(["git", "apply", "all.diff"], check=True)
    else:
        subprocess.run(["patch", "--binary", "-p1", "-i", "all.diff"], check=True, capture_output=True)
    for name, text in texts.items():
        assert Path(name).read_bytes() == text.replace("old", "new").encode(), name


@pytest.mark.parametrize("always", [True, False], ids=["colours", "terminal"])
def test_a_terminal_is_sent_no_control_characters(
    always: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("a\x1b]0;b.py", "# \x1b[2J\x9b\u202e\x07\n\tx = old\n".replace("\t", "if 1:\t"))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["fix", ".", "--color", "always" if always else "never"]) == 1
    out = re.sub("\x1b\\[[0-9;]+m", "", capsys.readouterr().out)
    assert out == (
        '--- "a/a\\033]0;b.py"\n+++ "b/a\\033]0;b.py"\n@@ -1,2 +1,2 @@\n'
        " # \\x1b[2J\\x9b\\u202e\\x07\n-if 1:\tx = old\n+if 1:\tx = new\n"
    )


def test_colours(capsys: pytest.CaptureFixture[str]) -> None:
    put("a.py", "x = old\n")
    assert main(["fix", "a.py", "--color", "always"]) == 1
    out = capsys.readouterr().out
    assert "\x1b[31m-x = old\x1b[0m\n\x1b[32m+x = new\x1b[0m\n" in out


class Input(io.TextIOWrapper):
    """Standard input that holds some bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", Input(data))


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        (b"x = old\n", b"x = new\n", 0),
        (b"\xef\xbb\xbfx = old\r\n", b"\xef\xbb\xbfx = new\r\n", 0),
        (b"x = plain\n", b"x = plain\n", 1),
        (b"x = 1", b"x = 1", 0),
        (b"def f(:\n", b"", 2),
    ],
)
def test_standard_input_comes_out_fixed(
    before: bytes,
    after: bytes,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    feed(monkeypatch, before)
    assert run("-", "--stdin-filename", "src/a.py") == code
    out, err = capsysbinary.readouterr()
    assert out == after
    assert b"src/a.py:1:7: syntax error" in err or code < 2


def test_standard_input_that_is_excluded_comes_out_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put("build/a.py", "")
    feed(monkeypatch, b"x = old\n")
    assert run("-", "--stdin-filename", "build/a.py", "--force-exclude") == 0
    assert capsys.readouterr().out == "x = old\n"


def test_standard_input_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-", "--apply") == 2
    assert "cannot write standard input" in capsys.readouterr().err


TRAIN = """\
import torch


def train(model, loader, enabled):
    for batch in loader:
        with torch.cuda.amp.autocast(enabled):  # mixed precision
            loss = model(batch)
        loss.backward()
"""


WITH = "        with torch.cuda.amp.autocast(enabled):  # mixed precision\n"
FIXED = """\
        with torch.amp.autocast(
            "cuda", enabled=enabled, dtype=torch.float16
        ):  # mixed precision
"""


def test_real_rules_from_end_to_end() -> None:
    file = put("train.py", TRAIN)
    command = [
        sys.executable,
        "-m",
        "perflint",
        "fix",
        "--isolated",
        "--torch-version",
        "2.4",
        "--select",
        "TPF902",
        "train.py",
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(fix.__file__).parents[2])}
    first = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (first.returncode, first.stderr) == (1, "Would fix 1 finding in 1 file.\n")
    assert all(f"+{line}\n" in first.stdout for line in FIXED.splitlines())
    second = subprocess.run([*command, "--apply"], capture_output=True, text=True, env=environment)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "Fixed 1 finding in 1 file.\n")
    third = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (third.returncode, third.stdout, third.stderr) == (0, "", "Nothing to fix.\n")
    assert file.read_text() == TRAIN.replace(WITH, FIXED)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_processes_check_all_files_once_before_the_first_is_written(
    jobs: str, cached: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fix, "active_rules", active_rules)
    monkeypatch.setattr("perflint.engine.files._WORTH_A_WORKER", 0)
    files = [put(f"src/train{number}.py", TRAIN) for number in range(4)]
    log = Path("log")
    check = checking.check_source

    def checked(source: Source, project: Project, *given: Any, **named: Any) -> Report:
        if project.base is None:
            with log.open("a") as out:
                print("checked", source.path, file=out)
        return check(source, project, *given, **named)

    def written(path: str, *given: Any) -> None:
        with log.open("a") as out:
            print("written", path, file=out)
        write.write_file(path, *given)

    for module in (checking, workers, fix):
        monkeypatch.setattr(module, "check_source", checked)
    monkeypatch.setattr(fix, "write_file", written)
    cache = ["--cache-dir", "cache"] if cached else ["--no-cache"]
    assert run("src", "--select", "TPF902", "--torch-version", "2.4", "--jobs", jobs, "--apply", *cache) == 0
    assert capsys.readouterr() == ("", "Fixed 4 findings in 4 files.\n")
    lines = log.read_text().splitlines()
    assert sorted(lines[:4]) == [f"checked {each}" for each in files]
    assert lines[4:] == [f"written {each}" for each in files]
    assert {each.read_text() for each in files} == {TRAIN.replace(WITH, FIXED)}


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="later versions do not read such an end")
def test_a_file_that_ends_in_a_backslash(capsys: pytest.CaptureFixture[str]) -> None:
    """Python 3.11 reads it, and tokenize does not."""
    put("a.py", "x = old  # why\r\ny = x\\\r\n")
    put("b.py", "x = old\n")
    assert run("--apply", ".") == 0, capsys.readouterr().err
    assert Path("a.py").read_bytes() == b"x = new  # why\r\ny = x\\\r\n"
    assert Path("b.py").read_text() == "x = new\n"

"""The plugin in real flake8 runs, compared with the command line."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from flake8.main.application import Application

import perflint
from perflint.config.settings import Profile
from perflint.engine.cache.pickles import dumped
from perflint.findings import Report
from perflint.integrations.flake8 import PROFILES
from tests.rules.harness import parse_fixture, source_cases

ROOT = Path(perflint.__file__).parents[1]
LINE = re.compile(r"(?:\./)?(.+?):(\d+):(\d+): (TPF\d+) (?:\[[*~!]\] )?(.*)")
Violation = tuple[str, int, int, str, str]

HOT = """\
import torch


def train(model, loader, optimizer):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize(){comment}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def is_installed() -> bool:
    found = entry_points(group="flake8.extension")
    return any(point.value == "perflint.integrations.flake8:Plugin" for point in found)


def configure(settings: str = "") -> tuple[str, str]:
    """Write flake8's settings; the options that name the file."""
    local = (
        "" if is_installed() else "[flake8:local-plugins]\nextension =\n    TPF = perflint.integrations.flake8:Plugin\n"
    )
    Path("flake8.cfg").write_text(f"[flake8]\n{settings}\n{local}")
    return "--config", "flake8.cfg"


def flake8(*arguments: str, stdin: str | None = None) -> str:
    """The output of flake8 in a process of its own."""
    command = [sys.executable, "-m", "flake8", *configure(), *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", input=stdin)
    assert not done.stderr, done.stderr
    return done.stdout


Flake8 = Callable[..., str]


@pytest.fixture
def flake8_here(capsys: pytest.CaptureFixture[str]) -> Flake8:
    """The output of flake8 in this process, as if the plugin had not run before."""

    def run(*arguments: str, settings: str = "") -> str:
        sys.modules.pop("perflint.integrations.flake8_files", None)
        Application().run([*configure(settings), "--jobs", "1", *arguments])
        shown = capsys.readouterr()
        assert not shown.err, shown.err
        return shown.out

    return run


def check(*arguments: str) -> str:
    command = [sys.executable, "-m", "perflint", "check", "--output-format", "concise", *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert done.returncode < 2, done.stderr
    return done.stdout


def violations(output: str) -> list[Violation]:
    found = [LINE.fullmatch(line) for line in output.splitlines()]
    return [(m[1].replace(os.sep, "/"), int(m[2]), int(m[3]), m[4], m[5]) for m in found if m]


def codes(output: str) -> list[str]:
    return [violation[3] for violation in violations(output)]


def put(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


@pytest.mark.parametrize(
    ("profile", "every"),
    [("audit", 15), *(pytest.param(profile, 1, marks=pytest.mark.slow) for profile in PROFILES)],
)
def test_same_as_the_command_line(profile: str, every: int) -> None:
    for case in source_cases()[::every]:
        assert case.fixture.exists(), f"{case} has no fixture"
        put(f"{case}.py", parse_fixture(case.fixture.read_text(encoding="utf-8")).text)
    hot = HOT.format(comment="")
    put("odd/windows.py", hot.replace("\n", "\r\n"))
    put("odd/mark.py", "\ufeff" + hot)
    put("odd/tabs.py", hot.replace("    ", "\t"))
    put("odd/wide.py", hot.replace("torch.cuda.synchronize()", "größe = '😀', torch.cuda.synchronize()"))
    expected = violations(check(".", "--isolated", "--profile", profile))
    found = violations(flake8("--select", "TPF", "--perflint-profile", profile, "."))
    assert len(expected) > 4
    assert sorted(found) == sorted(expected)


def test_the_entry_point_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["flake8.extension"] == {"TPF": "perflint.integrations.flake8:Plugin"}


def test_on_by_default(flake8_here: Flake8) -> None:
    put("a.py", HOT.format(comment=""))
    assert codes(flake8_here("a.py")) == ["TPF122"]
    assert codes(flake8_here("--extend-ignore", "TPF1", "a.py")) == []


def test_settings_of_the_project_hold(flake8_here: Flake8) -> None:
    put("on/a.py", HOT.format(comment=""))
    put("off/a.py", HOT.format(comment=""))
    put("off/pyproject.toml", "[tool.perflint]\nignore = ['explicit-synchronize']\n")
    put("out/a.py", HOT.format(comment=""))
    put("out/pyproject.toml", "[tool.perflint]\nextend-exclude = ['a.py']\n")
    put("some/a.py", HOT.format(comment=""))
    put("some/pyproject.toml", "[tool.perflint.per-file-ignores]\n'a.py' = ['TPF122']\n")
    assert [v[0] for v in violations(flake8_here("--select", "TPF", "."))] == ["on/a.py"]


def test_findings_of_the_baseline_are_not_reported(flake8_here: Flake8) -> None:
    put("pyproject.toml", "[tool.perflint]\nbaseline = 'known.json'\n")
    for name in ("a.py", "sub/b.py"):
        put(name, HOT.format(comment=""))
    subprocess.run([sys.executable, "-m", "perflint", "baseline", "."], check=True, capture_output=True)
    assert not codes(flake8("--select", "TPF", "."))
    assert not codes(flake8_here("--select", "TPF", "a.py", "a.py", "./a.py"))
    # A second one in the same file, and one in a new file, are new.
    put("a.py", HOT.format(comment="\n        torch.cuda.synchronize()"))
    put("c.py", HOT.format(comment=""))
    expected = [(path, code) for path, _, _, code, _ in violations(check("."))]
    assert [(v[0], v[3]) for v in violations(flake8_here("--select", "TPF", "."))] == expected
    assert expected == [("a.py", "TPF122"), ("c.py", "TPF122")]


def test_a_missing_baseline_is_a_fault(flake8_here: Flake8) -> None:
    put("a.py", HOT.format(comment=""))
    put("pyproject.toml", "[tool.perflint]\nbaseline = 'known.json'\n")
    ((path, line, _, code, message),) = violations(flake8_here("--select", "TPF", "a.py"))
    assert (path, line, code) == ("a.py", 1, "TPF000")
    assert "known.json cannot be read" in message and "`perflint baseline` writes it" in message


def test_a_fault_in_the_settings_is_shown(flake8_here: Flake8) -> None:
    put("a.py", HOT.format(comment=""))
    put("pyproject.toml", "[tool.perflint]\nprofil = 'audit'\n")
    ((path, line, column, code, message),) = violations(flake8_here("--select", "TPF", "a.py"))
    assert (path, line, column, code) == ("a.py", 1, 1, "TPF000")
    assert "unknown key `profil`" in message and "did you mean `profile`?" in message


@pytest.mark.parametrize(
    ("comment", "arguments", "expected"),
    [
        ("", (), 1),
        ("  # noqa: TPF122", (), 0),
        ("  # noqa: TPF122", ("--disable-noqa",), 1),
        ("  # perflint: ignore[TPF122] timing", (), 0),
        ("  # perflint: ignore[TPF122] timing", ("--disable-noqa",), 0),
        # The comment is for another rule, and is reported as unused.
        ("  # perflint: ignore[TPF101]", (), 2),
    ],
)
def test_comments(comment: str, arguments: tuple[str, ...], expected: int, flake8_here: Flake8) -> None:
    put("a.py", HOT.format(comment=comment))
    assert len(codes(flake8_here("--select", "TPF", *arguments, "a.py"))) == expected


SELDOM = "import torch\n\n\ndef shown(scaler: torch.cuda.amp.GradScaler) -> bool:\n    return scaler.is_enabled()\n"


def test_profile_by_option_and_by_settings(flake8_here: Flake8) -> None:
    put("a.py", SELDOM)
    audit = codes(flake8_here("--select", "TPF", "--perflint-profile", "audit", "a.py"))
    assert audit and not codes(flake8_here("--select", "TPF", "a.py"))
    assert codes(flake8_here("--select", "TPF", "a.py", settings="perflint-profile = audit")) == audit
    put("pyproject.toml", "[tool.perflint]\nprofile = 'audit'\n")
    assert codes(flake8_here("--select", "TPF", "a.py")) == audit
    assert not codes(flake8_here("--select", "TPF", "--perflint-profile", "default", "a.py"))


def test_a_code_that_is_spelt_out_is_shown(flake8_here: Flake8) -> None:
    put("a.py", SELDOM)
    assert not codes(flake8_here("--select", "TPF9", "a.py"))
    assert codes(flake8_here("--extend-select", "TPF902", "a.py")) == ["TPF902"]
    assert codes(flake8_here("a.py", settings="extend-select = TPF902")) == ["TPF902"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", True),
        ("select = E,F,W,C90", False),
        ("select = E,F,W,C90\nextend-select = TPF122", True),
        ("select = T", True),
        ("ignore = TPF", False),
        ("ignore = TPF1", True),
        ("extend-ignore = TPF\nextend-select = TPF122", True),
        ("select = TPF\nextend-ignore = TPF", False),
        ("select = E,ACM", True),
        ("per-file-ignores = a.py:TPF", False),
        ("per-file-ignores = b.py:TPF", True),
    ],
)
def test_files_are_checked_if_codes_may_be_shown(settings: str, expected: bool, flake8_here: Flake8) -> None:
    put("a.py", HOT.format(comment=""))
    flake8_here("a.py", settings=settings)
    assert ("perflint.integrations.flake8_files" in sys.modules) == expected


def test_the_plugin_alone_imports_nothing_slow() -> None:
    program = (
        "import __future__, argparse, ast, functools, re, sys, typing\n"
        "before = {*sys.modules}\n"
        "import perflint.integrations.flake8\n"
        "print(*sorted({*sys.modules} - before))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    plugin = "perflint.integrations.flake8"
    assert ran.stdout.split() == ["perflint", "perflint.integrations", plugin, f"{plugin}_choice"]


def test_profiles_are_those_of_perflint() -> None:
    assert [profile.value for profile in Profile] == [*PROFILES]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_reports_are_kept(jobs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFLINT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFLINT_NO_CACHE", "")
    put("pyproject.toml", "")
    put("a.py", HOT.format(comment="  # noqa: TPF122"))
    put("b.py", HOT.format(comment=""))
    first = flake8("--disable-noqa", "--select", "TPF", "-j", jobs, "a.py", "b.py")
    (kept,) = (tmp_path / "cache").glob("*/*.sqlite")
    base = sqlite3.connect(kept)
    reports = base.execute("SELECT kind, content FROM result WHERE length(kind) = 16").fetchall()
    assert first.count("TPF122") == 2 and len(reports) == 2
    # They are read: with an empty one, nothing is found.
    base.execute("UPDATE result SET content = ? WHERE length(kind) = 16", (dumped(Report()),))
    base.commit()
    base.close()
    assert not flake8("--select", "TPF", "-j", jobs, "a.py", "b.py")
    # Others are not: perflint itself heeds `noqa`, and standard input has a text of its own.
    assert "TPF122" in check("b.py") and "TPF122" not in check("a.py")
    text = HOT.format(comment="")
    assert codes(flake8("--select", "TPF", "--stdin-display-name", "b.py", "-", stdin=text)) == ["TPF122"]


def test_standard_input() -> None:
    put("off/pyproject.toml", "[tool.perflint]\nignore = ['TPF122']\n")
    text = HOT.format(comment="")
    shown = flake8("--select", "TPF", "--stdin-display-name", "on/a.py", "-", stdin=text)
    assert [(v[0], v[3]) for v in violations(shown)] == [("on/a.py", "TPF122")]
    assert not codes(flake8("--select", "TPF", "--stdin-display-name", "off/a.py", "-", stdin=text))


def test_syntax_errors_are_left_to_flake8(flake8_here: Flake8) -> None:
    put("a.py", "def f(:\n")
    assert "E999" in flake8_here("a.py") and "TPF" not in flake8_here("a.py")

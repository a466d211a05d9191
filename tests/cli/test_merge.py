"""`perflint merge`: reports of the parts of a run joined into the report of the run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from perflint.config.settings import OutputFormat
from tests.cli.command import Command

SAMPLE = Path(__file__).parents[1] / "engine" / "order_sample"
BAD = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"
SILENCED = f"{BAD.rstrip()}  # perflint: ignore[TPF902] -- old torch\n"
LOOP = "def train(model, loader):\n    for batch in loader:\n        print(model(batch).sum().item())\n"


@pytest.fixture(autouse=True)
def stated_torch(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that warns of deprecated names, also with `--isolated`."""
    monkeypatch.setenv("PERFLINT_TORCH_VERSION", "2.6")


@pytest.fixture
def project(perflint: Command) -> Command:
    """A project with findings of all kinds, silenced ones, and files that cannot be checked."""
    shutil.copytree(SAMPLE, perflint.folder / "src" / "sample", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("a.py", "src/a/b.py", "src/a-b.py", "src/a.py"):
        perflint.write(name, BAD + LOOP)
    perflint.write("src/quiet.py", SILENCED)
    perflint.write("src/broken.py", "if")
    perflint.write("src/odd.py", b"\xff\n")
    perflint.write("src/clean.py", "x = 1\n")
    return perflint


def check(run: Command, name: str, *options: str) -> int:
    """Write the JSON report of a run."""
    return run("check", "--output-format", "json", "--output-file", name, "--isolated", *options).code


def shards(run: Command, *options: str) -> list[str]:
    """The reports of three parts."""
    names = [f"part{part}.json" for part in (1, 2, 3)]
    codes = [check(run, name, "--shard", f"{part}/3", *options) for part, name in enumerate(names, 1)]
    assert 2 in codes
    return names


FORMS = [form.value for form in OutputFormat if form is not OutputFormat.JUNIT]


@pytest.mark.parametrize(("profile", "forms"), [("default", ["json"]), ("audit", FORMS)])
def test_merged_parts_are_the_whole_run(
    profile: str, forms: list[str], project: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = shards(project, "--profile", profile)
    # Runs in other formats read what the first one found.
    monkeypatch.delenv("PERFLINT_NO_CACHE")
    monkeypatch.setenv("PERFLINT_CACHE_DIR", str(project.folder / ".cache"))
    statistics = [("--statistics", "--output-format", form) for form in ("json", "full")]
    for options in (*(("--output-format", form) for form in forms), *statistics):
        whole = project("check", "--isolated", "--profile", profile, *options)
        ran = project("merge", "--isolated", *reversed(names), *options)
        assert ran.out == whole.out, options
        assert ran.code == whole.code == 2
        if options == ("--output-format", "json"):
            assert json.loads(ran.out)["summary"]["suppressed"] == len(json.loads(ran.out)["silenced"]) == 1
        assert sorted(ran.err.splitlines()) == sorted(whole.err.splitlines()), options


def test_a_problem_of_the_run_is_told_once(project: Command) -> None:
    names = shards(project, ".", "nowhere")
    whole = project("check", "--isolated", ".", "nowhere", "--output-format", "json")
    merged = project("merge", *names, "--output-format", "json")
    assert merged.out == whole.out
    assert merged.err.count("nowhere") == 1


def test_a_part_that_is_missing_is_no_part_without_findings(perflint: Command) -> None:
    for at in range(4):
        perflint.write(f"{at}.py", BAD)
    for part in range(1, 4):
        check(perflint, f"{part}.json", "--shard", f"{part}/3")
    ran = perflint("merge", "1.json", "3.json", "--output-format", "concise")
    assert ran.code == 2 and "error: there is no report of part 2 of 3\n" in ran.err and "3.py:3" in ran.out
    assert perflint("merge", "1.json", "3.json", "2.json", "--exit-zero").code == 0
    data = json.loads((perflint.folder / "1.json").read_text())
    for shard in ("0/3", "1/0", "1", 3, None, "1/99999999"):
        data["summary"]["shard"] = shard
        perflint.write("0.json", json.dumps(data))
        assert "`summary.shard` is not what perflint writes" in perflint("merge", "0.json").err


def test_parts_of_other_files_are_no_run(perflint: Command) -> None:
    for name in "adg":
        perflint.write(f"{name}.py", BAD)
    for name in "bcef":
        perflint.write(f"{name}.py", "")
    check(perflint, "1.json", "--shard", "1/3")
    # A job has made a file: what it lists is one place further, so no part has `d.py` and `g.py`.
    perflint.write("aa.py", "")
    check(perflint, "1.json", "--shard", "1/3")
    (perflint.folder / "aa.py").unlink()
    for part in (2, 3):
        check(perflint, f"{part}.json", "--shard", f"{part}/3", str(perflint.folder))
    ran = perflint("merge", "1.json", "2.json", "3.json", "--exit-zero")
    assert ran.code == 2 and "error: the 3 parts are not of the same files" in ran.err
    check(perflint, "1.json", "--shard", "1/3")
    ran = perflint("merge", "1.json", "2.json", "3.json", "--exit-zero", "--output-format", "concise")
    assert ran.code == 0 and ran.out.count("TPF") == 3


def test_exit_codes(perflint: Command) -> None:
    perflint.write("bad.py", BAD)
    perflint.write("clean.py", "x = 1\n")
    assert (check(perflint, "1.json", "bad.py"), check(perflint, "2.json", "clean.py")) == (1, 0)
    assert perflint("merge", "2.json").code == 0
    assert perflint("merge", "1.json", "2.json").code == 1
    assert perflint("merge", "1.json", "2.json", "--exit-zero").code == 0


def test_cells_of_notebooks(perflint: Command) -> None:
    cells = [{"cell_type": "code", "source": text, "metadata": {}, "outputs": []} for text in ("x = 1", BAD, BAD)]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    perflint.write("a.ipynb", json.dumps(notebook))
    perflint.write("b.py", BAD)
    for part in (1, 2):
        assert check(perflint, f"{part}.json", "--shard", f"{part}/2", ".", "a.ipynb") == 1
    for form in ("json", "full", "concise", "sarif", "github"):
        whole = perflint("check", "--isolated", "a.ipynb", "b.py", "--output-format", form)
        ran = perflint("merge", "--isolated", "1.json", "2.json", "--output-format", form)
        assert (ran.code, ran.out) == (1, whole.out)


def test_without_the_files(project: Command) -> None:
    names = shards(project)
    whole = project("check", "--isolated", "--output-format", "json").out
    shutil.rmtree(project.folder / "src")
    assert project("merge", *names, "--output-format", "json").out == whole
    for form in OutputFormat:
        ran = project("merge", *names, "--output-format", form.value)
        assert ran.code == 2 and (ran.out or form in (OutputFormat.GITHUB, OutputFormat.AZURE)), form


def test_reports_with_a_file_in_common(perflint: Command) -> None:
    perflint.write("bad.py", BAD)
    check(perflint, "1.json")
    shutil.copy(perflint.folder / "1.json", perflint.folder / "2.json")
    ran = perflint("merge", "1.json", "2.json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: 1.json and 2.json both have findings of bad.py\n")


def changed(document: Any, path: tuple[str | int, ...], value: object) -> str:
    """A document with another value at a path; without that value for `...`."""
    at = document
    for key in path[:-1]:
        at = at[key]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("version",), 2, "its version is 2, and this perflint reads version 1"),
        (("version",), ..., "it is not a report of perflint"),
        (("statistics",), [], "it has counts in place of findings"),
        (("silenced",), ..., "`silenced` is missing; another version of perflint may have written it"),
        (("findings", 0, "line"), "3", "`findings[0].line` is not what perflint writes"),
        (("findings", 0, "line"), True, "`findings[0].line` is not what perflint writes"),
        (("findings", 0, "heat"), "icy", "`findings[0].heat` has the unknown value `icy`"),
        (("findings", 0, "code"), "TPF101<script>", "`findings[0].code` is not what perflint writes"),
        (("findings", 0, "name"), "a@b", "`findings[0].name` is not what perflint writes"),
        (("findings", 0), 7, "`findings[0]` is not what perflint writes"),
        (("findings", 0, "fix", "edits", 0, "text"), None, "`findings[0].fix.edits[0].text` is not what"),
        (("findings", 0, "fix", "since"), "2", "`findings[0].fix.since` is not what"),
        (("summary", "hidden"), {"audit": "many"}, "`summary.hidden.audit` is not what perflint writes"),
    ],
)
def test_what_is_no_report(path: tuple[str | int, ...], value: object, reason: str, perflint: Command) -> None:
    perflint.write("bad.py", BAD)
    check(perflint, "report.json")
    perflint.write("bad.json", changed(json.loads((perflint.folder / "report.json").read_text()), path, value))
    ran = perflint("merge", "bad.json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: bad.json cannot be merged: {reason}")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cannot be merged: it is not JSON"),
        (b"[" * 100_000, "cannot be merged: it is not JSON"),
        (b"[]", "cannot be merged: it is not a report of perflint"),
        (b"\xff", "cannot be merged: it is not UTF-8"),
        (b'{"version": NaN}', "cannot be merged: it is not JSON"),
        (b'{"path": "\\ud800.py"}', "cannot be merged: a text in it has a null character, or half a surrogate pair"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_files_that_are_no_reports(content: bytes | None, reason: str, perflint: Command) -> None:
    if content is not None:
        perflint.write("x.json", content)
    ran = perflint("merge", "x.json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: x.json {reason}")


@pytest.mark.parametrize(
    ("name", "is_shown"),
    [
        ("other.py", True),
        ("other.PYI", True),
        ("script", True),
        (".git/config", False),
        (".env", False),
        ("key.pem", False),
    ],
)
def test_a_forged_report_shows_no_file_that_is_not_code(name: str, is_shown: bool, perflint: Command) -> None:
    perflint.write("bad.py", BAD)
    check(perflint, "report.json")
    document = json.loads((perflint.folder / "report.json").read_text())
    for finding in document["findings"]:
        finding |= {"path": name, "line": 2, "end_line": 2, "column": 1, "end_column": 3}
    perflint.write("forged.json", json.dumps(document))
    (perflint.folder / name).parent.mkdir(exist_ok=True)
    perflint.write(name, ("#!/usr/bin/python3" if name == "script" else "") + "\ntoken = secret\n")
    for form in ("full", "sarif", "markdown"):
        out = perflint("merge", "forged.json", "--output-format", form).out
        assert name in out and ("secret" in out) is (is_shown and form == "full"), form

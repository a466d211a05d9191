"""Findings depend on the files and settings of a project alone, not on the file that is checked first or with it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.file import check_source
from perflint.engine.files import check_files
from perflint.engine.projects import Projects
from perflint.findings import Report
from perflint.output.json import document
from perflint.semantics.project import Project
from perflint.source.files import below
from perflint.source.text import Source

AUDIT = Settings(profile=Profile.AUDIT)
LARGE, SAMPLE_OF_LARGE = 1000, 120
PACKAGES = ("trl", "verl", "detr", "open_clip", "transformers")


def documents(files: Sequence[str]) -> dict[str, str]:
    """The findings of each file as JSON, from one run over these files."""
    found = {}
    for source, report in check_files(files, active_rules(AUDIT), AUDIT):
        assert not report.problems
        found[source.path] = as_json(report)
    return found


def as_json(report: Report) -> str:
    return json.dumps(document(report)["findings"])


def orders(files: list[str]) -> Iterator[list[str]]:
    yield files[::-1]
    for seed in range(2):
        yield random.Random(seed).sample(files, len(files))


def check_orders(files: list[str], alone: Sequence[str]) -> int:
    """Compare orders of one run, and runs over single files, and count the findings."""
    forward = documents(files)
    for order in orders(files):
        assert documents(order) == forward
    for file in alone:
        assert documents([file]) == {file: forward[file]}
    return sum(len(json.loads(text)) for text in forward.values())


def test_of_a_sample(sample: Path) -> None:
    files = list(below(str(sample), AUDIT))
    assert check_orders(files, files) >= 10


def test_an_edit_and_its_undo(sample: Path) -> None:
    """What was learned of a text is forgotten with it."""
    rules = active_rules(AUDIT)
    ops, train = sample / "net" / "ops.py", sample / "train.py"
    project = Projects(AUDIT).of(train)

    def check(project: Project) -> str:
        return as_json(check_source(Source(str(train), train.read_text()), project, rules, AUDIT))

    before = check(project)
    edited = project.overlay({ops: ops.read_text().replace("x * 2", "x.cpu()")})
    assert check(edited) != before
    assert check(project) == before == check(edited.overlay({ops: ops.read_text()}))


def test_an_overlay_finds_what_the_edited_files_hold(sample: Path) -> None:
    rules = active_rules(AUDIT)
    ops, train = sample / "net" / "ops.py", sample / "train.py"
    edited = ops.read_text().replace("x * 2", "x.cpu()") + "\n\ndef added(x):\n    return scale(x).item()\n"

    def check(project: Project, path: Path, text: str) -> str:
        return as_json(check_source(Source(str(path), text), project, rules, AUDIT))

    overlay = Projects(AUDIT).of(train).overlay({ops: edited})
    open_texts = [check(overlay, ops, edited), check(overlay, train, train.read_text())]
    ops.write_text(edited)
    project = Projects(AUDIT).of(train)
    assert open_texts == [check(project, path, path.read_text()) for path in (ops, train)]


def test_hash_seeds(sample: Path) -> None:
    """Sets of names have another order in each process."""
    command = [sys.executable, "-m", "perflint", "check", "--profile", "audit", "--output-format", "json", str(sample)]
    runs = [
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, check=False).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] and len(json.loads(runs[0])["findings"]) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_of_public_projects(package: str) -> None:
    """Projects in the folder that PERFLINT_PROJECTS names; one of every twelve files is also checked alone.

    Of a large project, a random sample is checked, beside all files that it asks about.
    """
    folder = Path(os.environ.get("PERFLINT_PROJECTS", ""), package)
    if not os.environ.get("PERFLINT_PROJECTS") or not folder.is_dir():
        pytest.skip("PERFLINT_PROJECTS names no folder with it")
    files = sorted(below(str(folder), AUDIT))
    if len(files) > LARGE:
        files = random.Random(0).sample(files, SAMPLE_OF_LARGE)
    print(f"{package}: {check_orders(files, files[::12])} findings in {len(files)} files")

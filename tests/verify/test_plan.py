"""Fixes, chosen one by one."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from perflint.config.settings import Settings
from perflint.engine.file import check_source
from perflint.engine.projects import Projects
from perflint.findings import Confidence, Edit, Finding, Fix, Report, Safety, Span
from perflint.frozen import replace
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source
from perflint.verify.plan import Plan
from tests.output.reports import finding

TEXT = """import torch


def train(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        weight = torch.ones(3).to(x.device)
        with torch.cuda.amp.autocast():
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda(), weight)
        loss.backward()
        optimizer.step()
        total += loss.item()
        mask = torch.zeros(len(x)).to(loss.device)
        loss = loss + mask
    return total
"""


RULES = RuleSet(all_rules())


def check(path: str, text: str, project: Project) -> Report:
    return check_source(Source(path, text), project, RULES, Settings(torch_version=(2, 6)))


def plan(folder: Path, monkeypatch: pytest.MonkeyPatch, safeties: Collection[Safety], **files: str) -> Plan:
    monkeypatch.chdir(folder)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return Plan([f"{name}.py" for name in files], check, Projects(Settings()), safeties)


def test_each_fix_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(tmp_path, monkeypatch, {Safety.SAFE, Safety.UNSAFE}, a=TEXT, b="import torch\n")
    assert not made.problems and list(made.texts) == ["a.py"]
    lines = {(one.code, one.line, one.safety) for one in made.candidates}
    assert {("TPF902", 8, Safety.SAFE), ("TPF101", 12, Safety.UNSAFE)} < lines
    assert len([one for one in made.candidates if one.line == 13]) == 1
    whole = made.changed(made.candidates)["a.py"].splitlines()
    before = TEXT.splitlines()
    assert made.changed(frozenset()) == {}
    for one in made.candidates:
        text = made.changed(frozenset({one}))["a.py"].splitlines()
        assert text[one.line - 1] != before[one.line - 1]
        assert set(text) - set(before) <= set(whole)
        rest = made.changed(made.candidates - {one})["a.py"].splitlines()
        assert before[one.line - 1] in rest
    assert "    total = float(total)" in whole


def test_safe_ones_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(tmp_path, monkeypatch, {Safety.SAFE}, a=TEXT)
    assert {one.safety for one in made.candidates} == {Safety.SAFE}
    assert "loss.item()" in made.changed(made.candidates)["a.py"]
    assert made.encoded(made.candidates) == {"a.py": made.changed(made.candidates)["a.py"].encode()}


def test_bad_files_are_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(tmp_path, monkeypatch, {Safety.SAFE}, a="def f(:\n", b=TEXT)
    (tmp_path / "c.py").write_bytes(b"x = '\xff'\n")
    again = Plan(["a.py", "c.py", "gone.py"], check, Projects(Settings()), {Safety.SAFE})
    assert [problem.path for problem in made.problems] == ["a.py"] and made.candidates
    assert [problem.path for problem in again.problems] == ["a.py", "c.py", "gone.py"] and not again.candidates


def test_lines_are_those_of_the_text_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fix that becomes possible in a second round is found below lines that the first has added."""

    def found(number: int, line: str, code: str, new: str | None, *imports: str) -> Finding:
        place = Span(number, 1, number, len(line) + 1)
        fix = None if new is None else Fix("Write it", Safety.SAFE, (Edit(place, new),), imports)
        return replace(finding(place, confidence=Confidence.HIGH, fix=fix), code=code, name=code.lower())

    def toy(path: str, text: str, project: Project) -> Report:
        report = Report(files=1)
        for number, line in enumerate(text.splitlines(), 1):
            if line == "first":
                report.findings.append(found(number, line, "TPF101", "gc", "import gc", "import re"))
            elif line == "last":
                report.findings.append(found(number, line, "TPF102", None if "first" in text else "re"))
        return report

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("first\nmiddle\nlast\n")
    made = Plan(["a.py"], toy, Projects(Settings()), {Safety.SAFE})
    assert sorted((one.code, one.line) for one in made.candidates) == [("TPF101", 1), ("TPF102", 3)]
    (text,) = made.changed(made.candidates).values()
    assert text.splitlines()[-3:] == ["gc", "middle", "re"]
    second = frozenset(one for one in made.candidates if one.code == "TPF102")
    assert made.changed(second) == {}

"""The answers to articles' advice name rules, experiments and records that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perflint.rules.registry import all_rules
from perflint.tracer.events import KINDS, Header
from tests.rules.harness import parse_fixture, source_cases

ROOT = Path(__file__).parents[2]
ROWS = [
    line
    for line in (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| advice |")
]
_NAMES = r"((?:`[\w-]+`(?:, | and )?)+)"
_EXPERIMENTS = re.compile(rf"experiments? {_NAMES}")
_RECORDS = re.compile(rf"{_NAMES} records?\b")


def _names(pattern: re.Pattern[str], row: str) -> list[str]:
    return [name for found in pattern.findall(row) for name in re.findall(r"`([\w-]+)`", found)]


def _experiments() -> set[str]:
    guide = (ROOT / "docs" / "guide" / "tracing.md").read_text(encoding="utf-8")
    table = guide.partition("| experiment |")[2].partition("\n\n")[0]
    return {name for line in table.splitlines() for name in re.findall(r"`([\w-]+)`", line.split("|")[1:2][0] or "")}


def test_each_code_stands_before_the_link_to_its_page() -> None:
    pages = {rule.code: rule.name for rule in all_rules()}
    for row in ROWS:
        linked = re.findall(r"(TPF\d{3}) \[([\w-]+)\]\(rules/([\w-]+)\.md\)", row)
        assert all(pages.get(code) == name == page for code, name, page in linked), row
        assert {code for code, _, _ in linked} == set(re.findall(r"TPF\d{3}", row)), row
        assert len(linked) == len(re.findall(r"\(rules/(?!not-a-rule)", row)), row


def test_experiments_and_records_are_those_of_the_tracer() -> None:
    experiments = _experiments()
    for row in ROWS:
        assert experiments.issuperset(_names(_EXPERIMENTS, row)), row
        assert set(_names(_RECORDS, row)) <= {*KINDS, "header"}, row


def test_each_rule_that_answers_is_tested_on_code() -> None:
    """Its fixture has marked lines, which `tests/rules` holds against its findings."""
    tested = {
        case.rule.code for case in source_cases() if parse_fixture(case.fixture.read_text(encoding="utf-8")).marked
    }
    for row in ROWS:
        assert set(re.findall(r"TPF\d{3}", row)) <= tested, row


def test_each_run_that_answers_is_tested() -> None:
    """Tests of the tracer name the class of each record, and the class or the name of each experiment."""
    pytest.importorskip("torch")
    from perflint.tracer.experiments.run import INSTEAD, LAYERS, MODELS

    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "tracer").rglob("*.py"))
    records = {**KINDS, "header": Header}
    experiments = {each.name: type(each).__name__ for each in (*LAYERS, *INSTEAD, *MODELS)}
    for row in ROWS:
        for name in _names(_RECORDS, row):
            assert re.search(rf"\b{records[name].__name__}\b", text), (name, row)
        for name in _names(_EXPERIMENTS, row):
            assert f'"{name}"' in text or re.search(rf"\b{experiments[name]}\b", text), (name, row)


def test_each_piece_of_advice_has_an_answer() -> None:
    reason = "not advised|not so|not a matter|not advice|not needed|nothing to do"
    for row in ROWS:
        advice, answer = [cell.strip() for cell in row.strip("| ").split(" | ")]
        assert advice and len(answer) > 20
        assert re.search(rf"TPF\d{{3}}|\b[Rr]un: |{reason}", answer), row


def test_what_is_looked_for_is_found() -> None:
    assert len(ROWS) > 50
    assert "conv-bn-fusion" in {name for row in ROWS for name in _names(_EXPERIMENTS, row)}
    assert "cudagraph-skip" in {name for row in ROWS for name in _names(_RECORDS, row)}

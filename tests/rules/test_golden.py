"""Every rule's fixes against the diff beside its fixture."""

from __future__ import annotations

import difflib
from dataclasses import replace
from functools import cache

import pytest

from perflint.findings import WRITABLE, Finding
from perflint.fixes.apply import Outcome, apply_fixes
from perflint.rules.base import Rule
from tests.rules.harness import Case, lint, parse_fixture, source_cases
from tests.sample import sample

CASES = source_cases()
ALL = tuple(case.rule for case in CASES)
by_rule = pytest.mark.parametrize("case", CASES, ids=str, scope="session")


@cache
def fix(text: str, rule: type[Rule], others: tuple[type[Rule], ...] = ()) -> Outcome:
    """Apply all fixes of a rule, safe and unsafe, while the others look on."""

    def relint(now: str) -> list[Finding]:
        found = lint(now, [rule, *(other for other in others if other is not rule)], "audit")
        return [finding if finding.code == rule.code else replace(finding, fix=None) for finding in found]

    return apply_fixes(text, relint(text), relint, WRITABLE)


@cache
def fixture(case: Case) -> str:
    return parse_fixture(case.fixture.read_text(encoding="utf-8")).text


@by_rule
def test_golden(case: Case, update_golden: bool) -> None:
    before = fixture(case)
    lines = (text.splitlines(keepends=True) for text in (before, fix(before, case.rule).text))
    changed = "".join(difflib.unified_diff(*lines, case.fixture.name, "fixed", n=1))
    if update_golden:
        if changed:
            case.golden.write_text(changed, encoding="utf-8", newline="")
        else:
            case.golden.unlink(missing_ok=True)
        return
    if not changed:
        assert not case.golden.exists(), f"{case} fixes nothing, so {case.golden.name} must not be there"
        return
    assert case.golden.exists(), f"{case} has fixes: run pytest --update-golden and read {case.golden.name}"
    assert changed == case.golden.read_text(encoding="utf-8")


@by_rule
def test_every_fix_applies_and_cures(case: Case) -> None:
    outcome = fix(fixture(case), case.rule)
    left = [f"{s.finding.span.line}: {s.finding.message} ({s.reason})" for s in outcome.skipped]
    assert not left, "\n" + "\n".join(left)
    again = fix(outcome.text, case.rule)
    assert again.text == outcome.text and not again.applied


@pytest.mark.parametrize("case", sample(CASES, 2), ids=str, scope="session")
def test_fixes_bring_no_finding_of_any_rule(case: Case) -> None:
    before = fixture(case)
    alone = fix(before, case.rule)
    if alone.text == before:
        return
    outcome = fix(before, case.rule, ALL)
    left = [f"{s.finding.span.line}: {s.finding.message} ({s.reason})" for s in outcome.skipped]
    assert not left, "\n" + "\n".join(left)
    assert outcome.text == alone.text


@pytest.mark.parametrize(
    "case",
    [case if not at % 6 else pytest.param(case, marks=pytest.mark.slow) for at, case in enumerate(CASES)],
    ids=str,
    scope="session",
)
def test_fixes_keep_windows_newlines(case: Case) -> None:
    before = fixture(case)
    windows = fix(before.replace("\n", "\r\n"), case.rule).text
    assert windows == fix(before, case.rule).text.replace("\n", "\r\n")

"""Every rule against its fixture."""

from __future__ import annotations

import pytest

from tests.rules.harness import Case, Fixture, compare, lint, parse_fixture, silent_blocks, source_cases

CASES = source_cases()
by_rule = pytest.mark.parametrize("case", CASES, ids=str, scope="session")
"""Each rule with the tests of other modules about it, in one process, so that they share its findings."""


def load(case: Case) -> Fixture:
    assert case.fixture.is_file(), f"{case} has no fixture: write tests/rules/{case}.py"
    return parse_fixture(case.fixture.read_text(encoding="utf-8"))


@by_rule
def test_markers(case: Case) -> None:
    fixture = load(case)
    foreign = {code for _, code in (*fixture.error, *fixture.audit)} - {case.rule.code}
    assert not fixture.malformed, "\n".join(fixture.malformed)
    assert not foreign, f"{case} is {case.rule.code}; its fixture speaks of {sorted(foreign)}"
    bad = fixture.error.total() + fixture.audit.total()
    silent = silent_blocks(fixture.text, fixture.marked)
    assert bad >= 3, f"{case}: {bad} marked findings, at least 3 are needed"
    assert len(silent) >= 5, (
        f"{case}: {len(silent)} top-level functions, classes or blocks without a marker, "
        f"at least 5 look-alikes are needed; found: {silent}"
    )


@by_rule
def test_default_profile(case: Case) -> None:
    fixture = load(case)
    differences = compare(
        case.fixture, fixture.text, fixture.error, lint(fixture.text, [case.rule], "default"), "default"
    )
    assert not differences, "\n" + "\n".join(differences)


@by_rule
def test_audit_profile(case: Case) -> None:
    fixture = load(case)
    expected = fixture.error + fixture.audit
    differences = compare(case.fixture, fixture.text, expected, lint(fixture.text, [case.rule], "audit"), "audit")
    assert not differences, "\n" + "\n".join(differences)


def test_no_stray_fixtures() -> None:
    from tests.rules.harness import FIXTURES

    endings = (".py", ".run.py", ".change.py")
    known = {case.fixture.with_suffix(ending) for case in CASES for ending in endings}
    stray = [str(path.relative_to(FIXTURES)) for path in sorted(FIXTURES.glob("*/*.py")) if path not in known]
    assert not stray, f"no rule module goes with {stray}"

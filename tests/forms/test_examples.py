"""The examples of all rules have the findings that docs/forms.md shows, in each form.

Each form is looked at with a quarter of the rules, another one for the next form. All of them take a minute:
`pytest --slow`.
"""

from __future__ import annotations

import pytest

from tests.forms.catalogue import FORMS
from tests.forms.program import Form
from tests.forms.table import COMMAND, PAGE, Kind, cell, column, page, reasons, title, written_table
from tests.rules.harness import source_cases

TEXT = PAGE.read_text(encoding="utf-8")
TABLE = written_table(TEXT)
LEAST = 0.9
"""The share of entries that hold. It only grows."""
LEAST_OF_FIXTURES = 0.94
"""The same for the findings of fixtures."""


@pytest.mark.parametrize("form", FORMS, ids=title)
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_findings_are_those_of_the_table(form: Form, every: int) -> None:
    cases = source_cases()[FORMS.index(form) % every :: every]
    shown = {case.rule.code: TABLE[case.rule.code, title(form)] for case in cases}
    assert column(form, cases) == shown, f"run `{COMMAND}`, read the difference, and give new losses a reason"


def test_rules_are_those_of_the_table() -> None:
    assert {code for code, _ in TABLE} == {case.rule.code for case in source_cases()}


def test_all_else_has_a_reason() -> None:
    lost = {place for place, entry in TABLE.items() if entry not in ("", "✓")}
    given = [place for reason in reasons() for place in reason.places]
    assert len(given) == len(set(given)), "an entry has two reasons"
    assert not lost - set(given), "these are lost without a reason"
    assert not set(given) - lost, "these hold, or are no entries: take them out of reasons.toml"


def test_almost_all_hold() -> None:
    entries = [entry for entry in TABLE.values() if entry]
    assert entries.count("✓") >= LEAST * len(entries)


def test_page_is_up_to_date() -> None:
    assert page(TABLE) == TEXT, f"run `{COMMAND}`"


@pytest.mark.slow
def test_almost_all_findings_of_fixtures_hold() -> None:
    cells = [cell(Kind.FIXTURES, case, form) for case in source_cases() for form in FORMS]
    asked, lost = sum(each.asked for each in cells), sum(each.lost for each in cells)
    assert lost <= (1 - LEAST_OF_FIXTURES) * asked, f"{lost} of {asked} are lost"

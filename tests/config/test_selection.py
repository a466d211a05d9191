"""Selectors and how they combine."""

from __future__ import annotations

import pytest

from perflint.config.errors import ConfigurationError
from perflint.config.selection import Selection, choose, expand

RULES = {
    "TPF101": "scalar-read-in-loop",
    "TPF102": "print-of-device-tensor",
    "TPF111": "nonzero",
    "TPF201": "blocking-copy",
    "TPF501": "eval-without-no-grad",
}
SHORT = {code.removeprefix("TPF"): code for code in RULES}


def codes(*selections: Selection) -> str:
    """The numbers that are on, in one text."""
    chosen = choose(selections, RULES)
    return " ".join(number for number, code in SHORT.items() if code in chosen)


ONE_PLACE = [
    (Selection(), "101 102 111 201 501"),
    (Selection(select=("ALL",)), "101 102 111 201 501"),
    (Selection(select=()), ""),
    (Selection(select=("TPF",)), "101 102 111 201 501"),
    (Selection(select=("TPF1",)), "101 102 111"),
    (Selection(select=("TPF10",)), "101 102"),
    (Selection(select=("TPF101",)), "101"),
    (Selection(select=("nonzero", "TPF2")), "111 201"),
    (Selection(ignore=("TPF1",)), "201 501"),
    (Selection(ignore=("blocking-copy",)), "101 102 111 501"),
    # The more specific selector wins, whichever list it is in.
    (Selection(select=("TPF101",), ignore=("TPF1",)), "101"),
    (Selection(select=("TPF1",), ignore=("TPF101",)), "102 111"),
    (Selection(select=("TPF1",), ignore=("TPF10", "TPF2")), "111"),
    (Selection(select=("TPF1",), ignore=("ALL",)), "101 102 111"),
    (Selection(select=("scalar-read-in-loop",), ignore=("TPF1",)), "101"),
    # At equal specificity ignore wins.
    (Selection(select=("TPF101",), ignore=("TPF101",)), ""),
    (Selection(select=("TPF101",), ignore=("scalar-read-in-loop",)), ""),
    (Selection(select=("TPF1",), extend_select=("TPF2",)), "101 102 111 201"),
    (Selection(select=(), extend_select=("nonzero",)), "111"),
    (Selection(ignore=("TPF1",), extend_select=("TPF102",)), "102 201 501"),
]


@pytest.mark.parametrize(("selection", "expected"), ONE_PLACE)
def test_one_place(selection: Selection, expected: str) -> None:
    assert codes(selection) == expected


TWO_PLACES = [
    # A later select starts afresh …
    (Selection(select=("TPF1",)), Selection(select=("TPF2",)), "201"),
    (Selection(select=("TPF1",), extend_select=("TPF5",)), Selection(select=("TPF2",)), "201"),
    (Selection(ignore=("TPF101",)), Selection(select=("TPF101",)), "101"),
    (Selection(ignore=("TPF1",)), Selection(select=("TPF101",)), "101"),
    # … but keeps earlier ignores that are more specific.
    (Selection(ignore=("TPF101",)), Selection(select=("TPF1",)), "102 111"),
    (Selection(ignore=("TPF101",)), Selection(select=("ALL",)), "102 111 201 501"),
    # Without a select, a later place changes the earlier choice.
    (Selection(select=("TPF1",)), Selection(extend_select=("TPF2",)), "101 102 111 201"),
    (Selection(select=("TPF101", "TPF5")), Selection(ignore=("TPF1",)), "501"),
    (Selection(select=("TPF1",), ignore=("TPF101",)), Selection(extend_select=("TPF1",)), "101 102 111"),
    (Selection(select=("TPF1",)), Selection(), "101 102 111"),
    (Selection(select=("TPF1",)), Selection(select=()), ""),
]


@pytest.mark.parametrize(("file", "command_line", "expected"), TWO_PLACES)
def test_two_places(file: Selection, command_line: Selection, expected: str) -> None:
    assert codes(file, command_line) == expected


UNKNOWN = [
    ("TPF999", "`perflint rules` lists all codes"),
    ("TPF1O1", "did you mean `TPF101`?"),
    ("tpf1O1", "did you mean `TPF101`?"),
    ("TPF109", "codes that begin with TPF1: TPF101, TPF102, TPF111"),
    ("nonzeros", "did you mean `nonzero`?"),
    ("al", "did you mean `ALL`?"),
    ("E501", "`perflint rules` lists all codes"),
    ("TPF3", "`perflint rules` lists all codes"),
    ("TPF5011", "codes that begin with TPF5: TPF501"),
]


@pytest.mark.parametrize(("selector", "help"), UNKNOWN)
@pytest.mark.parametrize("key", ["select", "ignore", "extend_select"])
def test_unknown(selector: str, help: str, key: str) -> None:
    selection = Selection(**{key: (selector,)}, origin="pyproject.toml")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError) as raised:
        choose([selection], RULES)
    assert raised.value.message == f"unknown rule `{selector}` in `{key.replace('_', '-')}` of pyproject.toml"
    assert raised.value.help == help


@pytest.mark.parametrize("selector", ["tpf101", "Tpf1", "all", "NONZERO"])
def test_case_does_not_matter(selector: str) -> None:
    known = selector.lower() if selector == "NONZERO" else selector.upper()
    assert expand(selector, RULES, "") == expand(known, RULES, "")

"""Every habit of the catalogue is a rule, or the docs say why it is none."""

from __future__ import annotations

import re
from pathlib import Path

from perflint.rules.registry import all_rules

HABITS = {
    "S": range(101, 135),
    "T": range(201, 212),
    "M": range(301, 309),
    "A": range(351, 359),
    "N": range(371, 379),
    "D": range(401, 408),
    "E": range(501, 505),
    "O": range(601, 609),
    "C": range(701, 715),
    "G": range(801, 810),
    "J": range(901, 906),
    "P": range(921, 927),
    "L": range(941, 945),
    "X": range(961, 964),
}
"""The numbers of the codes that the habits of a letter have."""
NOT_A_RULE = Path(__file__).parents[2] / "docs" / "rules" / "not-a-rule.md"
CATALOGUE = {
    f"{letter}{number:02d}": f"TPF{code}" for letter, codes in HABITS.items() for number, code in enumerate(codes, 1)
}


def test_the_catalogue_is_as_long_as_it_was() -> None:
    assert len(CATALOGUE) == len(set(CATALOGUE.values())) == 129
    assert CATALOGUE["S34"] == "TPF134" and CATALOGUE["A08"] == "TPF358" and CATALOGUE["X03"] == "TPF963"


def rules() -> set[str]:
    return {rule.code for rule in all_rules()}


def reasons() -> dict[str, str]:
    """The lines of the page by the letter codes that they name in brackets."""
    found: dict[str, str] = {}
    for line in NOT_A_RULE.read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            for bracket in re.findall(r"\(([^()]*)\)", line):
                found.update((code, line) for code in re.findall(r"\b[A-Z]\d\d\b", bracket))
    return found


def test_a_rule_or_a_reason() -> None:
    known, excused = rules(), reasons()
    assert not [habit for habit, code in CATALOGUE.items() if code not in known and habit not in excused]


def test_reasons_name_the_catalogue_and_rules_that_exist() -> None:
    assert reasons().keys() <= CATALOGUE.keys()
    for habit, line in reasons().items():
        named = set(re.findall(r"TPF\d{3}", line)) - {CATALOGUE[habit]}
        assert named <= rules(), habit


def test_advice_that_another_rule_covers_names_a_rule() -> None:
    text = NOT_A_RULE.read_text(encoding="utf-8")
    (section,) = re.findall(r"^## Covered by another rule\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")][2:]
    assert len(rows) >= 9
    for advice, rule, *_ in rows:
        assert set(re.findall(r"TPF\d{3}", rule)) & rules(), advice

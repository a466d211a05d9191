"""`perflint rule` and `perflint rules`."""

from __future__ import annotations

import json
import re

import pytest

from perflint.rules.registry import all_rules
from tests.cli.command import ROOT, Command


@pytest.mark.parametrize("wanted", ["TPF902", "deprecated-amp", "tpf902", "Deprecated-AMP"])
def test_a_page(perflint: Command, wanted: str) -> None:
    ran = perflint("rule", wanted)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("# deprecated-amp (TPF902)\n\nSeverity warning, effect correctness, ")
    assert "\n## What it does\n" in ran.out


def test_measurements_are_shown_on_demand(perflint: Command) -> None:
    short, whole = perflint("rule", "TPF101").out, perflint("rule", "TPF101", "--measured").out
    text, _, last = short.rstrip().rpartition("\n\n")
    assert last == "`perflint rule TPF101 --measured` adds the table of measurements."
    assert whole.startswith(f"{text}\n\n## Measured\n") and "## Measured" not in short and "| step |" in whole
    assert perflint("rule", "TPF962", "--measured").out == perflint("rule", "TPF962").out


def test_a_page_as_json(perflint: Command) -> None:
    page = json.loads(perflint("rule", "TPF902", "--output-format", "json").out)
    assert (page["code"], page["name"], page["since"], page["until"]) == ("TPF902", "deprecated-amp", "2.4", None)
    assert page["page"].startswith("# deprecated-amp")
    assert "## Measured" in json.loads(perflint("rule", "TPF101", "--output-format", "json").out)["page"]


@pytest.mark.parametrize(
    ("wanted", "help"),
    [("deprecated-apm", "did you mean `deprecated-amp`?"), ("zzz", "`perflint rules` lists all rules")],
)
def test_no_such_rule(perflint: Command, wanted: str, help: str) -> None:
    ran = perflint("rule", wanted)
    assert (ran.code, ran.out, ran.err) == (2, "", f"error: no rule `{wanted}`\n  help: {help}\n")


def test_the_beginning_of_codes_lists_the_family(perflint: Command) -> None:
    listed = [line.split()[0] for line in perflint("rule", "tpf96").out.splitlines()[1:]]
    assert listed == [rule.code for rule in all_rules() if rule.code.startswith("TPF96")] and len(listed) > 1
    assert perflint("rules", "--select", "TPF96").out == perflint("rule", "TPF96").out


def test_the_guide_has_a_row_for_each_rule() -> None:
    """A row such as `TPF30x–31x` or `TPF4xx`."""
    guide = (ROOT / "docs" / "guide" / "configuration.md").read_text("utf-8").partition("| codes | topic |")[2]
    cells = [line.split("|")[1] for line in guide.partition("\n\n")[0].splitlines()[2:]]
    tens = {int(number) for cell in cells for number in re.findall(r"\b(?:TPF)?(\d\d)x\b", cell)}
    hundreds = {int(number) for cell in cells for number in re.findall(r"TPF(\d)xx", cell)}
    numbers = [int(rule.code[3:]) for rule in all_rules()]
    missing = [number for number in numbers if number // 100 not in hundreds and number // 10 not in tens]
    assert not missing, missing


def test_a_rule_must_be_named(perflint: Command) -> None:
    ran = perflint("rule")
    assert ran.code == 2
    assert "the following arguments are required: RULE" in ran.err


def test_all_rules(perflint: Command) -> None:
    ran = perflint("rules")
    assert (ran.code, ran.err) == (0, "")
    assert len(ran.out.splitlines()) == len(all_rules()) + 1


def test_all_rules_as_json(perflint: Command) -> None:
    rules = json.loads(perflint("rules", "--output-format", "json").out)
    assert [rule["code"] for rule in rules] == [rule.code for rule in all_rules()]
    assert {"code", "name", "family", "severity", "effect", "fixes", "replaces", "since", "until", "options"} == set(
        rules[0]
    )

"""The measured costs: complete, consistent, and worded as they are."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import replace
from pathlib import Path
from statistics import quantiles

import pytest

from perflint.findings import Effect, Severity
from perflint.output.measured import is_without_cost, measured
from perflint.rules.base import Rule
from perflint.rules.registry import all_rules
from perflint.rules.worth import Cost, Grid, cost, grid, grids, rows, sentence

ROWS = rows()
ORDER = (Severity.INFO, Severity.WARNING, Severity.ERROR)
WITHOUT_A_COST = frozenset(
    """TPF215 TPF359 TPF378 TPF503 TPF801 TPF803 TPF804 TPF805 TPF809 TPF810 TPF811 TPF812 TPF816 TPF817
    TPF901 TPF902 TPF903 TPF904 TPF907 TPF906 TPF927 TPF948 TPF981 TPF982 TPF983""".split()
)
"""Warnings that are there for errors, wrong results, or code that will stop working."""
BY_A_TRACE = frozenset("TPF991 TPF992 TPF993 TPF994".split())
"""Warnings that are reported only with the gain that a trace measured."""
BY_A_COUNT = frozenset("TPF406 TPF929 TPF932".split())
"""Warnings because the source shows how much is repeated, and no program is representative for its price."""
BY_MEMORY = frozenset({"TPF210"})
"""Warnings because the memory that the process needs grows with each step, by an amount that the page names."""
BY_A_REPORT = frozenset({"TPF716"})
"""Warnings because a public measurement of others, which the page names, shows what the pattern costs."""
MEASURED = frozenset(
    """TPF101 TPF102 TPF103 TPF104 TPF105 TPF106 TPF107 TPF108 TPF109 TPF110 TPF111 TPF112 TPF113 TPF114 TPF115 TPF116
    TPF117 TPF118 TPF119 TPF120 TPF121 TPF122 TPF123 TPF124 TPF125 TPF126 TPF127 TPF128 TPF134 TPF135 TPF136 TPF137
    TPF201 TPF202 TPF203 TPF204 TPF212 TPF213 TPF214 TPF301 TPF302 TPF303 TPF304 TPF305 TPF306 TPF307 TPF308
    TPF309 TPF310 TPF351 TPF352 TPF354 TPF358 TPF374 TPF401 TPF501 TPF502 TPF504 TPF601 TPF602 TPF603 TPF605 TPF606
    TPF607 TPF608 TPF701
    TPF402 TPF609 TPF715 TPF814 TPF924 TPF942
    TPF311 TPF312 TPF313 TPF315 TPF316 TPF317 TPF318 TPF319 TPF360 TPF407 TPF505 TPF604 TPF714 TPF717 TPF813 TPF921
    TPF922 TPF923 TPF928 TPF930 TPF931 TPF934 TPF935 TPF944 TPF945 TPF946 TPF947 TPF951
    TPF702 TPF703 TPF704 TPF705 TPF708 TPF709 TPF710 TPF711 TPF712 TPF807 TPF815 TPF941 TPF963""".split()
)
"""Rules of which steps were measured; it only grows."""
ELSEWHERE = frozenset("TPF353 TPF356 TPF357 TPF376".split())
"""Codes of patterns that were measured and have no rule, or none yet."""


def is_consistent(row: Cost) -> bool:
    return (
        row.scope in ("operation", "step")
        and all((row.rules, row.device, row.torch, row.source, row.shape))
        and row.low <= row.ratio <= row.high
        and row.low * 0.8 <= row.bad_ms / row.good_ms <= row.high * 1.2
    )


def test_rows_are_consistent() -> None:
    assert not [row for row in ROWS if not is_consistent(row)]


def test_rows_speak_for_rules_that_exist() -> None:
    known = {rule.code for rule in all_rules()} | ELSEWHERE
    assert not [row for row in (*ROWS, *grids()) if not known.issuperset(row.rules)]


def test_rows_are_found_by_name() -> None:
    row = cost("vocabulary-50257-step")
    assert row.ratio == 1.503 and row.rules == ("TPF352",)
    with pytest.raises(KeyError):
        cost("no-such-row")


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (50.236, "about 50 × slower"),
        (4.42, "about 4.4 × slower"),
        (1.371, "about 37% slower"),
        (1.1, "about 10% slower"),
        (1.004, "not measurably slower"),
        (0.9, "not measurably slower"),
    ],
)
def test_ratios_in_words(ratio: float, said: str) -> None:
    assert replace(ROWS[0], ratio=ratio).slower == said


def test_conditions_in_words() -> None:
    row = replace(ROWS[0], dtype="bfloat16", device="NVIDIA H200")
    assert row.where == "in bfloat16 on an H200"
    assert replace(row, dtype="bfloat16 autocast", device="NVIDIA B200").where == "under bfloat16 autocast on a B200"


@pytest.mark.parametrize(
    ("scope", "ratio", "low", "severity"),
    [
        ("step", 1.34, 1.3, Severity.ERROR),
        ("step", 1.3, 1.2, Severity.WARNING),
        ("step", 1.04, 1.01, Severity.WARNING),
        ("step", 1.02, 1.01, Severity.INFO),
        ("operation", 5.0, 4.9, Severity.INFO),
        # Where one of the runs lost nothing, it may be chance.
        ("step", 1.34, 0.99, Severity.INFO),
    ],
)
def test_severity_is_what_a_step_loses(scope: str, ratio: float, low: float, severity: Severity) -> None:
    assert replace(ROWS[0], scope=scope, ratio=ratio, low=low).severity is severity


def ids(each: Rule | Cost | Grid) -> str:
    return each.name


@pytest.mark.parametrize("rule", [rule for rule in all_rules() if rule.measured], ids=ids)
def test_severity_is_what_the_data_says(rule: Rule) -> None:
    deserved = max((cost(name).severity for name in rule.measured), key=ORDER.index)
    assert rule.severity is deserved, {name: (cost(name).ratio, cost(name).severity) for name in rule.measured}


@pytest.mark.parametrize("rule", [rule for rule in all_rules() if rule.measured_cost()], ids=ids)
def test_the_cost_is_one_sentence_with_its_conditions(rule: Rule) -> None:
    said = rule.measured_cost()
    assert said is not None and re.fullmatch(r"Measured on an? \w+( \([\w ]+\))?: [^{}\n]*[^.]\.", said), said
    assert not re.search(r"costs? [^,;.]*\d ×", said), "a share of time can be a cost, a ratio cannot"


def test_a_sentence_names_a_dtype_that_all_its_rows_share() -> None:
    assert sentence("{0}", "adamw-not-fused-gpt") == "Measured on an H200 (bf16): about 9%."
    assert sentence("{0} and {1}", "adam-not-fused", "adamw-not-fused-gpt").startswith("Measured on an H200: about 3.")
    assert sentence("{1}", "adam-not-fused", "adamw-not-fused-gpt") == "Measured on an H200 (bf16): about 9%."


def test_what_was_measured_stays_so() -> None:
    assert {rule.code for rule in all_rules() if rule.measured} >= MEASURED


def test_rules_go_by_steps_that_speak_for_them() -> None:
    named = [(rule.code, cost(name)) for rule in all_rules() for name in rule.measured]
    assert not [(code, row) for code, row in named if row.scope != "step" or code not in row.rules]


def test_reports_of_others_have_an_address() -> None:
    pages = {rule.code: " ".join(rule.document.split()) for rule in all_rules()}
    assert all("others measured it" in pages[code] and "](https://" in pages[code] for code in BY_A_REPORT)


def test_lists_of_exceptions_are_up_to_date() -> None:
    known = {rule.code: rule for rule in all_rules()}
    assert all(known[code].effect in (Effect.CORRECTNESS, Effect.CAPTURE) for code in WITHOUT_A_COST)
    assert not any(known[code].measured for code in WITHOUT_A_COST | BY_A_COUNT | BY_MEMORY | BY_A_REPORT)


@pytest.mark.parametrize("rule", [rule for rule in all_rules() if rule.severity is not Severity.INFO], ids=ids)
def test_what_is_more_than_information_was_measured_or_says_why_not(rule: Rule) -> None:
    reason = "It is a warning because" in " ".join((type(rule).__doc__ or "").split())
    assert bool(rule.measured) is not reason, "measure a step of a program, or say what else the severity is for"
    assert reason is (rule.code in WITHOUT_A_COST | BY_A_TRACE | BY_A_COUNT | BY_MEMORY | BY_A_REPORT)


def test_information_in_spite_of_a_measured_step_says_why() -> None:
    pages = {rule.code: " ".join(rule.document.split()) for rule in all_rules()}
    said = {code for code, page in pages.items() if "It is information because" in page}
    stepped = {code for row in ROWS if row.scope == "step" for code in row.rules}
    measured = {rule.code for rule in all_rules() if rule.measured or rule.severity is not Severity.INFO}
    assert said and not said & measured and said <= stepped


@pytest.mark.parametrize("rule", all_rules(), ids=ids)
def test_the_page_shows_what_was_measured(rule: Rule) -> None:
    section = measured(rule)
    for row in ROWS:
        if rule.code in row.rules:
            assert f"{row.ratio:.2f} ({row.low:.2f} – {row.high:.2f})" in section
    assert section.count("\n| \\*") == len(rule.measured)
    assert rule.measured or is_without_cost(rule) or "guess" in section


def quoted_names(tree: ast.Module) -> set[str]:
    """Strings of a module that are names of rows."""
    names = {row.name for row in ROWS}
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in names}


@pytest.mark.parametrize("rule", [rule for rule in all_rules() if rule.measured], ids=ids)
def test_messages_quote_rows_of_their_own_rule(rule: Rule) -> None:
    tree = ast.parse(Path(inspect.getfile(type(rule))).read_text(encoding="utf-8"))
    for name in quoted_names(tree):
        assert rule.code in cost(name).rules, f"{rule.code} quotes {name}, which speaks for {cost(name).rules}"


@pytest.mark.parametrize("each", grids(), ids=ids)
def test_a_grid_is_consistent(each: Grid) -> None:
    assert len(each.ratios) == len(each.rows) * len(each.inner) * len(each.outer)
    assert all(list(axis) == sorted(axis) for axis in (each.rows, each.inner, each.outer))
    assert all(0.5 < ratio < 10 for ratio in each.ratios)
    assert each.device and each.torch and each.source


def test_grids_are_read_at_their_cells_between_and_not_beyond() -> None:
    table = replace(grid("linear-outer-1-bfloat16"), rows=(1, 2), inner=(10, 40), outer=(10, 1000))
    table = replace(table, ratios=(9, 9, 9, 9, 1, 4, 2, 8))
    assert table.ratio(10, 10) == 1 and table.ratio(40, 1000) == pytest.approx(8)
    assert table.ratio(10, 100) == pytest.approx(2) and table.ratio(20, 1000) == pytest.approx(32**0.5)
    assert table.ratio(9, 10) is None and table.ratio(10, 1001) is None
    with pytest.raises(KeyError):
        grid("no-such-grid")


def test_the_readme_says_what_waits_cost() -> None:
    """Half of the measured steps lose from 1 to about 10%, and some more than half of their time."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    said = "A single wait often costs 1 to 10% of a training step. Together, or in small models, they can cost more"
    assert said in " ".join(readme.split())
    steps = [row for row in rows() if row.scope == "step" and any(code.startswith("TPF1") for code in row.rules)]
    low, _, high = quantiles([row.ratio for row in steps], n=4)
    assert 1.01 <= low <= high <= 1.12 and max(row.ratio for row in steps) > 2

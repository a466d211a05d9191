"""Every rule's name, code and page."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from perflint.findings import Effect, Severity
from perflint.rules.base import CommentRule, DeclaredRule, OutsideRule
from tests.rules.harness import SECTIONS, Case, cases, lint, python_blocks, sections

CASES = cases()
by_rule = pytest.mark.parametrize("case", CASES, ids=str)


def test_one_rule_per_module() -> None:
    assert not [(str(case), case.classes) for case in CASES if len(case.classes) != 1]


def test_codes_and_names() -> None:
    for rule, case in ((case.rule, case) for case in CASES):
        assert re.fullmatch(r"TPF\d{3}", rule.code), case
        assert rule.name.replace("-", "_") == case.stem
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", rule.name)
        assert isinstance(rule.effect, Effect), case
        assert isinstance(rule.severity, Severity), case
        assert isinstance(rule.listens, tuple), case
        assert bool(rule.listens) is not issubclass(rule, OutsideRule), case


def test_codes_and_names_are_unique() -> None:
    rules = [case.rule for case in CASES]
    for repeated in (Counter(rule.code for rule in rules), Counter(rule.name for rule in rules)):
        assert not [key for key, count in repeated.items() if count > 1]


def test_sections() -> None:
    for case in CASES:
        found = sections(case.rule)
        assert [heading for heading in found if heading] == list(SECTIONS), case
        empty = [heading for heading in SECTIONS if not found[heading].strip()]
        assert not empty, f"{case}: empty sections {empty}"


def test_every_block_is_python() -> None:
    bodies = [(case, heading, body) for case in CASES for heading, body in sections(case.rule).items()]
    for case, heading, body in bodies:
        for block in python_blocks(body):
            try:
                ast.parse(block)
            except SyntaxError as error:
                pytest.fail(f"{case}, {heading}: {error}\n{block}")


@by_rule
def test_bad_blocks_are_found(case: Case) -> None:
    blocks = python_blocks(sections(case.rule)["Bad"])
    assert blocks, f"{case}: the section Bad has no ```python block"
    for block in blocks:
        if issubclass(case.rule, (CommentRule, DeclaredRule)):
            # tests/engine/test_comments.py and tests/semantics/test_declared.py check them: they need settings.
            continue
        if issubclass(case.rule, OutsideRule):
            assert not lint(block, [case.rule], "audit"), f"{case.rule.code} speaks without a trace"
            continue
        assert lint(block, [case.rule], "audit"), f"{case.rule.code} does not find its own bad example:\n{block}"


@by_rule
def test_good_blocks_are_silent(case: Case) -> None:
    blocks = python_blocks(sections(case.rule)["Good"])
    assert blocks, f"{case}: the section Good has no ```python block"
    for block in blocks:
        found = [f"{f.span.line}: {f.message}" for f in lint(block, [case.rule], "audit")]
        assert not found, f"{case.rule.code} finds fault with its own good example:\n{block}\n{found}"

"""Fixes of code in other forms: imports by other names, calls over several lines with comments, walruses.

What a fix makes of another form of a fixture means what the golden file means, or the fix is left out:
it never writes a name that is not there, and never loses a comment or a name.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache

import pytest

from perflint.findings import Span
from perflint.fixes.apply import Outcome
from tests.fixes.forms import (
    arguments_within,
    comments_for_tests,
    complaints,
    meaning,
    over_lines,
    with_aliases,
    with_bare_walruses,
    with_walruses,
    without_walruses,
)
from tests.rules.harness import Case, lint, source_cases
from tests.rules.test_golden import by_rule, fix, fixture

CASES = [case for case in source_cases() if case.golden.exists()]
_FORMS = 4


def in_form(form: int) -> pytest.MarkDecorator:
    """Each fixture in one of the forms, and with `--slow` in all of them."""
    cases = enumerate(CASES)
    marked = [pytest.param(case, marks=() if index % _FORMS == form else pytest.mark.slow) for index, case in cases]
    return pytest.mark.parametrize("case", marked, ids=str, scope="session")


def golden(case: Case) -> str:
    """What the fixes make of a fixture, which its golden file holds."""
    return fix(fixture(case), case.rule).text


@cache
def known_names(text: str) -> Counter[str]:
    return complaints(text)


def check_names(before: str, outcome: Outcome) -> None:
    """No name may be used that nothing binds, nor one be bound twice."""
    new = complaints(outcome.text) - known_names(before)
    assert not new, "\n".join(new)


@by_rule
def test_golden_files_have_all_names(case: Case) -> None:
    check_names(fixture(case), fix(fixture(case), case.rule))


@in_form(0)
def test_imports_by_other_names(case: Case) -> None:
    text = with_aliases(fixture(case))
    outcome = fix(text, case.rule)
    assert meaning(outcome.text) == meaning(golden(case))
    check_names(text, outcome)


KEPT_OVER_LINES = {"sync/nan_check_per_step", "sync/truth_of_tensor", "transfer/blocking_h2d"}
"""Rules that leave statements over several lines as they are: a call in place of an assert would lose the layout, and
a move that goes as a whole would take its comments along."""


@in_form(1)
def test_calls_over_several_lines(case: Case) -> None:
    text = over_lines(fixture(case))
    outcome = fix(text, case.rule)
    if str(case) not in KEPT_OVER_LINES:
        assert meaning(outcome.text) == meaning(golden(case))
    check_names(text, outcome)
    lost = comments_for_tests(text) - comments_for_tests(outcome.text)
    assert lost <= of_statements(text), f"lost {sorted(lost - of_statements(text))}"


def of_statements(text: str) -> Counter[str]:
    """The comments in calls that are statements: with these they may go."""
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
    return Counter(
        comment for node in statements for comment in comments_for_tests(ast.get_source_segment(text, node) or "")
    )


@in_form(2)
def test_expressions_with_names(case: Case) -> None:
    before = fixture(case)
    check_walruses(case, with_walruses(before, fixed_spans(case)))


@in_form(3)
def test_arguments_with_names(case: Case) -> None:
    before = fixture(case)
    check_walruses(case, with_bare_walruses(before, arguments_within(before, fixed_spans(case))))


ODD = "a\x0cb\x1cc\u2028d\x85e"
"""Characters at which Python ends no line, while `str.splitlines` does."""


@in_form(2)
def test_comments_with_characters_that_look_like_ends_of_lines(case: Case) -> None:
    """Each stays whole where it is, moves as a whole, or goes with its statement."""
    before = fixture(case)
    lines = before.split("\n")
    simple = [node for node in ast.walk(ast.parse(before)) if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    for node in simple:
        last = lines[(node.end_lineno or 0) - 1]
        if len(last.encode()) == node.end_col_offset:
            lines[(node.end_lineno or 0) - 1] = f"{last}  # {node.lineno}{ODD}"
    whole = rf"\d+{ODD}\n"
    odd = re.findall(whole, "\n".join(lines))
    after = fix("\n".join(lines), case.rule).text
    assert odd and Counter(re.findall(whole, after)) <= Counter(odd)
    assert all(after.count(character) == len(re.findall(whole, after)) for character in "\x0c\x1c\u2028\x85")


OF_TWO_CALLS = {"transfer/create_then_move": ("    again =", "    cast =", "    half =")}
"""Lines whose fix takes a second call along, which stays if a walrus names the first one."""


@cache
def fixed_spans(case: Case) -> list[Span]:
    return [found.span for found in lint(fixture(case), [case.rule], "audit") if found.fix]


def check_walruses(case: Case, text: str) -> None:
    """Fixes of a text with walruses keep all of these, and do nothing else that the golden file has not."""
    before = fixture(case)
    outcome = fix(text, case.rule)
    lines = {line for one in (before, golden(case)) for line in meaning(one).splitlines()}
    other = [line for line in meaning(without_walruses(outcome.text)).splitlines() if line not in lines]
    other = [line for line in other if not line.startswith(OF_TWO_CALLS.get(str(case), ()))]
    assert not other, "\n".join(other)
    check_names(text, outcome)
    named = re.compile(r"named_\d+ :=")
    assert sorted(named.findall(outcome.text)) == sorted(named.findall(text))


NESTED = """
import torch as th
from torch import nn as N
from torch.nn import functional as FF


class Net(N.Module):
    def __init__(self, width: int):
        super().__init__()
        self.layers = N.Sequential(N.Conv2d(3, width, 3), N.BatchNorm2d(width))
        self.attention = N.MultiheadAttention(width, 8)

    def forward(self, x: th.Tensor, mask: th.Tensor):
        x = x.cuda()
        y = th.zeros(3).to(th.zeros(  # the inner one
            2,
        ).to(x.device).device)
        z = x.masked_fill(
            mask,
            x.masked_fill(mask, x.min()).max(),  # the inner one again
        )
        low = max(max(x.sum(), 1), th.tensor(2.0, device=x.device))
        inverse = th.linalg.inv(th.linalg.inv(x) + th.eye(3).to(x.device))
        if (total := x.sum()) > (limit := th.tensor(3.0).to(x.device)):
            x = th.where(x > limit, total, x).clone()
        return self.attention(x, x, self.attention(x, x, x)[0])[0] + y + z + low + inverse
"""


def squeezed(text: str) -> str:
    """A text without white space and trailing commas: long lines are broken."""
    return re.sub(r",(?=[)\]}])", "", re.sub(r"\s+", "", text))


def test_fixes_inside_of_others() -> None:
    every = [case.rule for case in CASES]
    text = NESTED
    for _ in range(2):
        for rule in every:
            text = fix(text, rule).text
    assert not complaints(text) - complaints(NESTED)
    assert text.count("#") == NESTED.count("#")
    for rule in every:
        again = fix(text, rule)
        assert again.text == text and not again.skipped, rule.name
    for written in (
        "y = th.zeros(3, device=th.zeros(",
        "device=x.device",
        "z = th.where(mask, th.where(mask, x.min(), x).max(), x)",
        "low = th.maximum(th.clamp(x.sum(), min=1), th.full((), 2.0, device=x.device))",
        "th.linalg.inv(th.linalg.inv(x) + th.eye(3, device=x.device))",
        "(limit := th.full((), 3.0, device=x.device))",
        "x = th.where(x > limit, total, x)\n",
        "self.attention(x, x, self.attention(x, x, x, need_weights=False)[0], need_weights=False)[0]",
        "N.Conv2d(3, width, 3, bias=False)",
    ):
        assert squeezed(written) in squeezed(text), f"{written} is not in\n{text}"

"""Fixes that readers of public code judged harmful, and the like of them that are right."""

from __future__ import annotations

import pytest

from perflint.findings import WRITABLE, Finding
from perflint.fixes.apply import apply_fixes
from perflint.rules.base import Rule
from perflint.rules.sync.scalar_read_in_loop import ScalarReadInLoop
from tests.rules.harness import lint


def fixed(rule: type[Rule], text: str) -> str:
    """A text after all fixes of a rule that may be written."""

    def relint(now: str) -> list[Finding]:
        return lint(now, [rule], "audit")

    findings = relint(text)
    assert findings, "nothing was found"
    return apply_fixes(text, findings, relint, WRITABLE).text


COUNT = """
import torch

model = torch.nn.Linear(8, 8).cuda()
episodes = 0
for step, data in enumerate(loader):
    out = model(data["x"].cuda())
    episodes += data["done"].cuda().sum().item()
{then}
"""


@pytest.mark.parametrize(
    "then",
    [
        "",
        "print(episodes)",
        "episodes = 0",
        "    if step % 100 == 0:\n        print(f'{episodes} episodes')\nprint(episodes / step)",
    ],
    ids=["for importers", "printed", "set again", "logged"],
)
def test_a_count_stays_a_whole_number(then: str) -> None:
    """Booleans and integers add up to an `int`; on the device the sum would be kept as a float."""
    text = COUNT.format(then=then)
    assert fixed(ScalarReadInLoop, text) == text


@pytest.mark.parametrize(
    "then",
    [
        "print(episodes / step)",
        "episodes /= step\nprint(episodes)",
        "    if step % 100 == 0:\n        print(episodes / step)\nprint(episodes / step)",
    ],
    ids=["divided", "divided in place", "logged"],
)
def test_a_count_that_is_only_divided_is_summed_on_the_device(then: str) -> None:
    assert "episodes = float(episodes)" in fixed(ScalarReadInLoop, COUNT.format(then=then))

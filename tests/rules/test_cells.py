"""Fixes that join code of the top level, in one cell of a notebook: cells may be run again, in any order."""

from __future__ import annotations

import pytest

from perflint.rules.base import Rule
from perflint.rules.sync.list_index import ListIndex
from perflint.rules.sync.nonzero_family import NonzeroFamily
from perflint.rules.sync.scalar_read_in_loop import ScalarReadInLoop
from tests.rules.harness import lint

HEAD = """import numpy as np
import torch

x = torch.arange(6.0).cuda()
y = x.exp()
m = x > 2
rows = np.arange(3)
"""
CASES: dict[str, tuple[type[Rule], str, str]] = {
    "mask": (NonzeroFamily, "a = x[m]\n", "b = y[m]\n"),
    "positions": (ListIndex, "a = x[rows]\n", "b = y[rows]\n"),
    "numbers": (
        ScalarReadInLoop,
        "a = torch.min(x).item()\nb = torch.max(x).item()\n",
        "c = torch.mean(x).item()\nd = torch.std(x).item()\n",
    ),
}


def fixes(rule: type[Rule], text: str) -> int:
    return sum(finding.fix is not None for finding in lint(text, [rule], "audit"))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("border", ["# %% cell 3\n", "# %%\n", "#~%% cell 2\n"])
def test_code_of_two_cells_is_not_joined(name: str, border: str) -> None:
    rule, first, second = CASES[name]
    assert fixes(rule, HEAD + first + second) == len((first + second).splitlines())
    assert fixes(rule, HEAD + first + border + second) == 0
    assert fixes(rule, HEAD + border + first + "# %d\n" + second) == len((first + second).splitlines())


def test_numbers_of_one_cell_are_joined() -> None:
    rule, first, second = CASES["numbers"]
    assert fixes(rule, HEAD + first + "# %%\n" + second + "e = x.float().std().item()\n") == 3


def test_a_function_may_change_what_the_top_level_made() -> None:
    for name in ("mask", "positions"):
        rule, first, second = CASES[name]
        made = "m" if name == "mask" else "rows"
        change = f"other = {made}\ndef change():\n    other[0] = 1\n"
        assert fixes(rule, HEAD + change + first + second) == 2
        assert fixes(rule, HEAD + change + first + "change()\n" + second) == 0

"""Sums stay as they are in loops that wait for another number in each iteration."""

from __future__ import annotations

import pytest

from perflint.rules.sync.scalar_read_in_loop import ScalarReadInLoop
from tests.rules.test_refused_fixes import fixed

RUN = """import torch

def run(env, model: torch.nn.Module, loader):
    model.cuda()
    total = 0.0
    steps = 0
    done = False
    {loop}
        out = model(torch.ones(3, device="cuda"))
        total += out.sum().item()
        steps += 1
        {then}
    return total
"""


@pytest.mark.parametrize(
    ("loop", "then", "is_kept"),
    [
        ("for _ in loader:", "pass", True),
        ("while steps < 9:", "pass", True),
        ("while not done:", 'done = env.step(out)["done"]', True),
        ("while not done and steps < 9:", 'done = env.step(out)["done"].item()', False),
        ("while not done:", "done = out.max().item() > 1", False),
        ("while not done:", "done = torch.ones(2).max().item() > 1", True),
        ("while steps < 9:", 'done = env.step(out)["done"].item()', True),
        ("for _ in loader:", 'if env.step(out)["done"].item():\n            break', False),
        ("for _ in loader:", 'if env.step(out)["done"].item():\n            steps = 0', True),
        ("for _ in loader:", "for _ in range(3):\n            if env.step(out).item():\n                break", True),
        ("for _ in loader:", "if steps > 9:\n            break", True),
    ],
)
def test_a_sum_beside_a_number_that_the_loop_needs(loop: str, then: str, is_kept: bool) -> None:
    assert ("total += out.sum().detach()" in fixed(ScalarReadInLoop, RUN.format(loop=loop, then=then))) is is_kept


@pytest.mark.parametrize(
    ("beside", "is_kept"),
    [("steps += unknown(out)", True), ("steps += unknown(out).item()", False), ("steps += out.shape[0]", True)],
)
def test_a_sum_beside_an_unknown_number(beside: str, is_kept: bool) -> None:
    text = RUN.format(loop="for _ in loader:", then=beside).replace("        steps += 1\n", "")
    assert ("total += out.sum().detach()" in fixed(ScalarReadInLoop, text)) is is_kept

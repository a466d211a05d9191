"""Fused optimizers before torch 2.4: their parameters must be on the GPU when they are made."""

from __future__ import annotations

import pytest

from perflint.rules.optimizer.for_loop_optimizer import ForLoopOptimizer
from tests.rules.harness import lint

HEAD = """
import torch

def main(loader, gpu):
    model = torch.nn.Linear(3, 3)
"""
TAIL = """
    for x in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()
"""
MADE = "    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)\n"
MOVED = "    model.cuda()\n"


@pytest.mark.parametrize(
    ("body", "since"),
    [
        (MOVED + MADE, (2, 0)),
        ('    model = model.to("cuda")\n' + MADE, (2, 0)),
        (MADE + MOVED, (2, 4)),
        (MADE, (2, 4)),
        (f"    if gpu:\n    {MOVED}{MADE}", (2, 4)),
        ("    other = torch.nn.Linear(3, 3).cuda()\n" + MADE, (2, 4)),
        (f'    device = "mps" if gpu else "cuda"\n{MOVED}{MADE}', (2, 5)),
    ],
)
def test_the_model_must_have_been_moved(body: str, since: tuple[int, int]) -> None:
    (found,) = lint(HEAD + body + TAIL, [ForLoopOptimizer], "audit")
    assert found.fix is not None and found.fix.since == since

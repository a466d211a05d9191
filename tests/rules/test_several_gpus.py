"""Tests of two tensors become one only if the file names no second GPU: on different GPUs they raise."""

from __future__ import annotations

import pytest

from perflint.rules.sync.truth_of_tensor import TruthOfTensor
from tests.rules.harness import lint

TEXT = """
import torch

def check(x: torch.Tensor, y: torch.Tensor) -> bool:
    if torch.any(x <= 0) or torch.any(y < 0):
        return False
    return True
"""


@pytest.mark.parametrize(
    ("more", "fixed"),
    [
        ("", 2),
        ("check(torch.ones(3).to('cuda:0'), torch.ones(3).cuda())\n", 2),
        ("check(torch.ones(3).to('cuda:0'), torch.ones(3).to('cuda:1'))\n", 0),
        ("check(torch.ones(3).cuda(), torch.ones(3).cuda(1))\n", 0),
        ("model = load(device_map='auto')\n", 0),
    ],
)
def test_tests_of_two_tensors(more: str, fixed: int) -> None:
    found = lint(TEXT + more, [TruthOfTensor], "audit")
    assert len(found) == 2 and sum(each.fix is not None for each in found) == fixed

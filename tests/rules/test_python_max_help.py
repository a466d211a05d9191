"""The help of python-max-on-tensors names the call to write."""

from __future__ import annotations

import pytest

from perflint.rules.sync.python_max_on_tensors import PythonMaxOnTensors
from tests.rules.harness import lint

NESTED = """
import torch

def forward(x: torch.Tensor, low: float, high: float):
    mean = x.cuda().mean()
    return {expression}
"""


@pytest.mark.parametrize(
    ("expression", "call"),
    [
        ("max(low, min(high, mean))", "torch.clamp(mean, low, high)"),
        ("min(max(mean, low), high)", "torch.clamp(mean, low, high)"),
        ("max(mean, low)", "mean.clamp(min=low)"),
        ("min(low, -mean)", "torch.clamp(-mean, max=low)"),
        ("max(mean, mean * 2)", "torch.maximum(mean, mean * 2)"),
    ],
)
def test_two_values_are_compared_on_the_gpu(expression: str, call: str) -> None:
    findings = lint(NESTED.format(expression=expression), [PythonMaxOnTensors], "audit")
    assert findings[0].help == f"Compare on the GPU: `{call}`."


def test_a_sort_of_two_tensors_fails_by_itself() -> None:
    assert lint(NESTED.format(expression="sorted(mean, mean * 2)"), [PythonMaxOnTensors], "audit") == []

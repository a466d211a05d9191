"""Fixes in projects that trace their models."""

from __future__ import annotations

import pytest

from perflint.rules.base import Rule
from perflint.rules.transfer.blocking_h2d import BlockingH2d
from perflint.rules.transfer.create_then_move import CreateThenMove
from tests.rules.harness import lint

GRID = """import torch

def grid(x: torch.Tensor):
    return torch.arange(3).type_as(x), (torch.arange(3) * 2).type_as(x)
"""
DEVICE = GRID.replace("type_as(x)", "to(x.device)")


def fixes(text: str, rule: type[Rule]) -> int:
    """The number of findings with a fix."""
    return sum(finding.fix is not None for finding in lint(text, [rule], "audit"))


@pytest.mark.parametrize("call", ["torch.jit.trace(grid, x)", "torch.onnx.export(model, x)", "jit.trace_module(m, x)"])
def test_traces_follow_type_as(call: str) -> None:
    export = f"\n\ndef export(model, x):\n    return {call}\n"
    found = [fixes(GRID, rule) for rule in (CreateThenMove, BlockingH2d)]
    assert sum(found) == 2
    assert [fixes(GRID + export, rule) for rule in (CreateThenMove, BlockingH2d)] == [0, 0]
    assert [fixes(DEVICE + export, rule) for rule in (CreateThenMove, BlockingH2d)] == [
        fixes(DEVICE, rule) for rule in (CreateThenMove, BlockingH2d)
    ]


RECORDED = """import torch

def device_of(device: str):
    graph = torch.jit.trace(lambda: torch.ones([]).to(torch.device(device)), example_inputs=[]).graph
    return [node for node in graph.findAllNodes("prim::Constant") if "Device" in repr(node)][-1]
"""


def test_a_lambda_that_is_recorded_keeps_its_steps() -> None:
    assert fixes(RECORDED, CreateThenMove) == 0
    assert fixes(RECORDED.replace("torch.jit.trace(", "run("), CreateThenMove) == 1
    assert fixes(RECORDED.replace("lambda: ", ""), CreateThenMove) == 1

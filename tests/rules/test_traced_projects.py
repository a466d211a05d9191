"""Fixes in projects that trace their models."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.frozen import replace
from perflint.rules.base import Rule
from perflint.rules.registry import RuleSet
from perflint.rules.transfer.blocking_h2d import BlockingH2d
from perflint.rules.transfer.create_then_move import CreateThenMove
from perflint.semantics.project import Project
from perflint.source.text import Source
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


@pytest.mark.parametrize(("exports", "offered"), [("torch.onnx.export(model, x)", 0), ("model(x)", 1)])
def test_a_file_that_imports_neither_may_trace(exports: str, offered: int, tmp_path: Path) -> None:
    grid, export = tmp_path / "grid.py", tmp_path / "export.py"
    grid.write_text(GRID, "utf-8")
    export.write_text(f"import torch\n\ndef export(model, x):\n    return {exports}\n", "utf-8")
    settings = replace(Settings(), profile=Profile.AUDIT)
    project = Project([grid, export])
    report = check_source(Source(str(grid), GRID), project, RuleSet([CreateThenMove()]), settings)
    assert sum(finding.fix is not None for finding in report.findings) == offered


RECORDED = """import torch

def device_of(device: str):
    graph = torch.jit.trace(lambda: torch.ones([]).to(torch.device(device)), example_inputs=[]).graph
    return [node for node in graph.findAllNodes("prim::Constant") if "Device" in repr(node)][-1]
"""


def test_a_lambda_that_is_recorded_keeps_its_steps() -> None:
    assert fixes(RECORDED, CreateThenMove) == 0
    assert fixes(RECORDED.replace("torch.jit.trace(", "run("), CreateThenMove) == 1
    assert fixes(RECORDED.replace("lambda: ", ""), CreateThenMove) == 1

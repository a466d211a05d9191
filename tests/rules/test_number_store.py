"""Stores of numbers, as fixes write them, stay in what `torch.onnx.export` makes of a module."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from perflint.findings import WRITABLE, Finding, Safety
from perflint.fixes.apply import apply_fixes
from perflint.rules.sync.number_store import NumberStore
from tests.rules.harness import lint

torch = pytest.importorskip("torch")

CODE = """import torch


class Sizes(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sizes = torch.zeros(2, 2, device=x.device)
        sizes[0, 1] = 2.5
        for i in range(2):
            sizes[i, i] = 7
        return x + sizes
"""


def fixed(text: str) -> str:
    def relint(now: str) -> list[Finding]:
        return lint(now, [NumberStore], "audit")

    return apply_fixes(text, relint(text), relint, WRITABLE).text


@pytest.fixture
def opset() -> Iterator[None]:
    from torch.onnx._internal.torchscript_exporter._globals import GLOBALS

    for version in range(10, 18):
        importlib.import_module(f"torch.onnx._internal.torchscript_exporter.symbolic_opset{version}")
    before = GLOBALS.export_onnx_opset_version
    GLOBALS.export_onnx_opset_version = 17
    yield
    GLOBALS.export_onnx_opset_version = before


def stores(text: str) -> int:
    """How many stores to elements the exported graph of a module has."""
    from torch.onnx._internal.torchscript_exporter import utils

    namespace: dict[str, type[torch.nn.Module]] = {}
    exec(compile(text, "sizes.py", "exec"), namespace)
    graph, _, _ = utils._model_to_graph(namespace["Sizes"](), (torch.ones(2, 2),))
    return str(graph).count("onnx::ScatterND(") + str(graph).count("onnx::ScatterND[")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("opset")
def test_exported_stores() -> None:
    after = fixed(CODE)
    assert "sizes[0, 1:2] = 2.5" in after
    assert "sizes[i, i].fill_(7)" in after
    assert stores(CODE) == stores(after) == 3
    assert stores(CODE.replace("[0, 1]", "[0, 1, None]")) < 3


@pytest.mark.parametrize(
    ("made", "then", "is_safe"),
    [
        ("torch.zeros(2, 3, device='cuda')", "", True),
        ("torch.zeros(2, 2, device='cuda')", "", False),
        ("torch.zeros(rows, 3, device='cuda')", "", True),
        ("torch.zeros(rows, columns, device='cuda')", "", False),
        ("torch.eye(3, device='cuda')", "", True),
        ("torch.eye(3, m=2, device='cuda')", "", False),
        ("torch.zeros(3, 2, device='cuda')", "x.t_()", False),
        ("torch.zeros(2, 3, device='cuda')", "x.t_()", False),
        ("torch.zeros(2, 3, device='cuda')", "x.resize_(2, 2)", False),
        ("torch.zeros(2, 3, device='cuda')", "x.data = other", False),
        ("torch.zeros(2, 3, device='cuda')", "x = x[:, :2]", False),
        ("torch.zeros(*rows, 3, device='cuda')", "", False),
    ],
)
def test_a_store_is_safe_if_its_position_is_there(made: str, then: str, is_safe: bool) -> None:
    """Outside of the tensor an integer raises an error, and a slice is empty."""
    lines = ["import torch", "def run(i: int, rows, columns, other):", f"    x = {made}", f"    {then or 'pass'}"]
    found = lint("\n".join([*lines, "    x[i, 2] = 1.0", "    return x\n"]), [NumberStore], "audit")
    fixes = [each.fix for each in found]
    assert [fix is not None and fix.safety for fix in fixes] == [Safety.SAFE if is_safe else Safety.UNSAFE]

"""Stores of numbers, as fixes write them, stay in what `torch.onnx.export` makes of a module."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from perflint.findings import WRITABLE, Finding
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

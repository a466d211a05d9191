"""What is said of a gradient scaler beside bfloat16."""

from __future__ import annotations

import pytest

from perflint.findings import Heat
from perflint.rules.sync.gradscaler_host_reads import GradscalerHostReads
from tests.rules.harness import lint

TRAINING = """\
import torch

def train(model, loader, half):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler()
    for batch in loader:
        with torch.autocast("cuda"{dtype}):
            loss = model(batch).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""


@pytest.mark.parametrize(
    ("dtype", "says", "fixes"),
    [
        (", dtype=torch.bfloat16", "remove the scaler", False),
        (", dtype=torch.float16", "fused=True", True),
        (", dtype=half", "fused=True", True),
        ("", "fused=True", True),
    ],
)
def test_no_scaler_is_needed_beside_bfloat16(dtype: str, says: str, fixes: bool) -> None:
    (finding,) = lint(TRAINING.format(dtype=dtype), [GradscalerHostReads], "default")
    assert says in (finding.help or "")
    assert (finding.fix is not None) is fixes


def test_a_function_that_captures_a_graph_runs_once() -> None:
    text = """\
import torch

def build(model, x, optimizer: torch.optim.Optimizer):
    scaler, graph = torch.amp.GradScaler("cuda"), torch.cuda.CUDAGraph()
    with {context}:
        loss = model(x).sum()
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    return graph, loss
"""
    heats = [
        [finding.heat for finding in lint(text.format(context=context), [GradscalerHostReads], "audit")]
        for context in ("torch.autocast('cuda')", "torch.cuda.graph(graph)")
    ]
    assert heats == [[Heat.HOT], [Heat.WARM]]

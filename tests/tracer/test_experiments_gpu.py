"""Experiments on a GPU (`pytest -m gpu`): CUDA graphs, precision, what is queued, and what is left behind."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

import perflint
from perflint.tracer.events import Experiment, Failure
from perflint.tracer.experiments import run
from perflint.tracer.experiments.launches import Compile
from perflint.tracer.trace import Trace

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")]


def trained(monkeypatch: pytest.MonkeyPatch, model: Any, given: Any, autocast: bool = False) -> Trace:
    """Train for some steps, then make all experiments that need no compiler."""
    import torch

    monkeypatch.setattr(run, "MODELS", tuple(each for each in run.MODELS if not isinstance(each, Compile)))
    optimizer = torch.optim.Adam(model.parameters())
    with perflint.trace(experiments=True, warmup=2, steps=4) as session:
        for _ in range(14):
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
                loss = model(given).float().square().mean()
            loss.backward()
            optimizer.step()
    assert session.trace is not None
    return session.trace


def test_launches_and_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from torch import nn

    model = nn.Sequential(*(layer for _ in range(30) for layer in (nn.Linear(64, 64), nn.Dropout(0.1)))).cuda()
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    trace = trained(monkeypatch, model, torch.randn(8, 64, device="cuda"))
    assert not trace.of(Failure), trace.of(Failure)
    found = {each.name: each for each in trace.of(Experiment)}
    assert {"tf32", "autocast", "cuda-graph", "fused-optimizer"} <= set(found)
    assert found["cuda-graph"].ratio > 2 and found["cuda-graph"].device == "cuda:0"
    assert found["fused-optimizer"].ratio > 1
    assert found["graphed-callables"].ratio > 1.2 and found["graphed-callables"].note == "of the whole model"
    assert (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == before


def test_layers_are_timed_as_the_gpu_works(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from torch import nn

    model = nn.Linear(1024, 1001).cuda()
    trace = trained(monkeypatch, model, torch.randn(4096, 1024, device="cuda"), autocast=True)
    (found,) = (each for each in trace.of(Experiment) if each.name == "channel-multiples")
    assert found.dtype == "bfloat16" and found.ratio > 1.3
    assert found.difference is not None and found.difference < 0.02


def test_what_cannot_be_captured_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from torch import nn

    class Reads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(nn.Sequential(*(nn.Linear(8, 8) for _ in range(20))) for _ in range(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.blocks[0](x)
            result: torch.Tensor = self.blocks[1](x if x.sum().item() > 0 else -x)
            return result

    trace = trained(monkeypatch, Reads().cuda(), torch.randn(8, 8, device="cuda"))
    assert [failure.message for failure in trace.of(Failure)] == [
        "forward and backward in one CUDA graph of the whole model: the model cannot be captured: it synchronizes"
    ]
    (graphed,) = (each for each in trace.of(Experiment) if each.name == "graphed-callables")
    assert graphed.note == "of blocks.0, blocks.1" and graphed.ratio > 1
    assert graphed.difference is not None and graphed.difference < 1e-5
    # The generator is still well.
    assert torch.nn.functional.dropout(torch.ones(8, device="cuda")).shape == (8,)


def test_the_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Conv2d(3, 60, 3), nn.BatchNorm2d(60), nn.Conv2d(60, 60, 3)).cuda()
    given = torch.randn(4, 3, 64, 64, device="cuda")
    torch.cuda.manual_seed(5)
    trained(monkeypatch, model, given)
    first, drawn = torch.cuda.memory_allocated(), torch.rand(2, device="cuda")
    model.zero_grad()
    torch.cuda.manual_seed(5)
    trained(monkeypatch, model, given)
    assert torch.cuda.memory_allocated() == pytest.approx(first, abs=1 << 16)
    assert torch.equal(torch.rand(2, device="cuda"), drawn)

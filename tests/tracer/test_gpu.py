"""On a GPU (`pytest -m gpu`): real syncs, and costs held against runs with and without them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.tracer.events import AllocatorChurn, HeldMemory, PageableCopy, Step, Sync
from perflint.tracer.file import read_trace
from perflint.tracer.trace import Trace
from tests.tracer.device import python

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")]

HEAD = """
import time
import torch
x = torch.randn(4096, 4096, device="cuda")
flag = torch.zeros((), device="cuda")
side = torch.cuda.Stream()
host = torch.ones(1 << 20)
optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, device="cuda"))], lr=0.1)
for step in range(40):
    z = x
    for _ in range(6):
        z = z @ x * 1e-2
"""
TAIL = """
    until = time.perf_counter() + 0.003
    while time.perf_counter() < until:
        pass
    optimizer.step()
torch.cuda.synchronize()
"""


def traced(folder: Path, body: str) -> Trace:
    """Trace a program whose steps take some 16 ms of matrix products and 3 ms of host work."""
    (folder / "program.py").write_text(HEAD + body + TAIL)
    done = python(folder, "-m", "perflint", "trace", "--warmup", "10", "program.py")
    assert done.code == 0, done.err
    assert "UserWarning" not in done.err
    return read_trace(folder / "perflint-trace.jsonl.gz")


def test_the_cost_of_a_sync_is_what_a_step_saves_without_it(tmp_path: Path) -> None:
    waiting, free = traced(tmp_path, "    z[0, 0].item()\n"), traced(tmp_path, "")
    (sync,) = waiting.unallowed_syncs
    assert sync.place.text == "z[0, 0].item()" and sync.hits.steps == waiting.header.steps
    cost = waiting.cost_ms(sync.place)
    assert cost is not None and waiting.step_ms is not None and free.step_ms is not None
    assert cost == pytest.approx(waiting.step_ms - free.step_ms, rel=0.15)


def test_a_sync_beside_a_full_queue_costs_nothing(tmp_path: Path) -> None:
    trace = traced(tmp_path, "    with torch.cuda.stream(side):\n        flag.item()\n")
    (sync,) = trace.unallowed_syncs
    cost = trace.cost_ms(sync.place)
    assert cost is not None and cost < 0.05


def test_steps_are_timed_on_the_gpu(tmp_path: Path) -> None:
    """The host needs 3 ms for a step and is far ahead."""
    trace = traced(tmp_path, "")
    plain = [step.ms for step in trace.of(Step) if not step.profiled]
    assert min(plain) > 8
    assert trace.profiled_steps == 3
    assert all(step.kernels >= 12 and step.idle_ms < 0.1 * step.ms for step in trace.of(Step) if step.profiled)


def test_explicit_syncs_and_pageable_copies(tmp_path: Path) -> None:
    trace = traced(
        tmp_path,
        "    torch.cuda.synchronize()\n    e = torch.cuda.Event()\n    e.record()\n    e.synchronize()\n"
        "    y = host.to('cuda', non_blocking=True)\n",
    )
    assert {(sync.kind, sync.place.text) for sync in trace.of(Sync) if sync.hits.steps} == {
        ("explicit", "torch.cuda.synchronize()"),
        ("explicit", "e.synchronize()"),
    }
    (copy,) = trace.of(PageableCopy)
    assert (copy.direction, copy.bytes) == ("host-to-device", 4 << 20)
    assert trace.of(AllocatorChurn)[0].segments_allocated == 0
    held = trace.of(HeldMemory)
    assert [(each.source, each.place is None) for each in held[:1]] == [("before", True)]
    assert any(each.place and each.place.text.startswith("y = host") and each.bytes == 4 << 20 for each in held)
    assert trace.header.devices and trace.header.torch

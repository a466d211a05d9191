"""Witnesses of switches, compilers and processes leave torch and the program as they were."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tracer import warm

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
PROGRAM = """
import torch
import torch._dynamo
import torch.distributed as dist
from torch import nn
from torch._dynamo import convert_frame
from torch._guards import TracingContext
from torch.autograd import anomaly_mode, profiler
from torch.nn.parallel import DistributedDataParallel

from perflint.tracer.session import trace


def state():
    return (
        torch.compile, nn.Module.compile, torch.cuda._lazy_init, torch.cuda.graph.__exit__, dist.all_reduce,
        anomaly_mode.set_detect_anomaly.__init__, anomaly_mode.detect_anomaly.__init__, profiler.emit_nvtx.__init__,
        DistributedDataParallel.__init__, nn.DataParallel.__init__, nn.DataParallel.replicate, torch.autograd.backward,
        torch.Tensor.backward, TracingContext.set_current_loc, len(convert_frame._bytecode_hooks),
    )


def work():
    torch.manual_seed(0)
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    @torch.compile(backend="eager")
    def forward(x):
        return net(x).relu()

    with torch.autograd.set_detect_anomaly(False):
        forward(torch.ones(3, 4))
    for _ in range(3):
        forward(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    return net.weight.detach().clone(), len(torch._dynamo.utils.graph_break_reasons)


before = state()
expected = work()
torch._dynamo.reset()
with trace(window=0):
    assert state() != before
    found = work()
assert state() == before
assert torch.equal(found[0], expected[0])
assert found[1] == expected[1]
"""


def test_nothing_stays(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = warm.script(tmp_path, "program.py")
    assert done.code == 0, done.err

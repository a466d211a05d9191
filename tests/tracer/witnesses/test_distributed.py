"""Collectives and wrappers of models, with two processes on the CPU."""

from __future__ import annotations

import os
import socket
from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.findings import Ruling
from perflint.tracer.events import Failure
from perflint.tracer.file import read_trace
from perflint.tracer.trace import Trace
from tests.tracer import warm
from tests.tracer.witnesses.running import OUTPUT, observed, verdicts

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None or os.name != "posix", reason="torch is not installed, or there is no gloo"
)
ACCELERATE = """
import torch
import torch.distributed as dist

class Accelerator:
    def __init__(self, group=None):
        self.group = group

    def gather(self, tensor):
        tensors = [torch.empty_like(tensor) for _ in range(dist.get_world_size(self.group))]
        dist.all_gather(tensors, tensor, group=self.group)
        return torch.cat(tensors)
"""
PROGRAM = """
import os
import sys

os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": sys.argv[1], "WORLD_SIZE": "2", "RANK": "1"}
sys.path.insert(0, "site-packages")
import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

peer = os.fork()
if not peer:
    os.environ["RANK"] = "0"
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
alone = [dist.new_group([each]) for each in range(2)][rank]


class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.spare = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.used(x)


def train(loader, path):
    model = DDP(nn.Linear(4, 4), find_unused_parameters=True)
    half = DDP(Half(), find_unused_parameters=True)
    wrapper = nn.DataParallel(nn.Linear(4, 4))
    optimizer = torch.optim.SGD([*model.parameters(), *half.parameters()], lr=0.1)
    for i, x in enumerate(loader):
        loss = (model(x) + half(x)).sum() + wrapper(x).sum()
        loss.backward()
        first, second = loss.detach().clone(), loss.detach().clone()
        dist.all_reduce(first)
        dist.all_reduce(second)
        dist.barrier()
        if (i + 1) % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
    torch.save(model.state_dict(), path)
    return model


def others(model, loader, every):
    both, own = Accelerator(), Accelerator(alone)
    model = DDP(torch.compile(model.module))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, x in enumerate(loader):
        model(x).mean().backward()
        dist.all_reduce(x)
        dist.all_reduce(x.detach())
        dist.barrier(group=alone)
        together = both.gather(x.detach())
        apart = own.gather(x.detach())
        if (i + 1) % every == 0:
            optimizer.step()


trained = train([torch.ones(2, 4)] * 8, f"model{rank}.pt")
torch.compiler.set_stance("force_eager")
others(trained, [torch.ones(2, 4)] * 8, 1)
dist.destroy_process_group()
if not peer:
    os._exit(0)  # threads of gloo that still run abort the end of an interpreter now and then
assert os.waitpid(peer, 0)[1] == 0
"""


def _traced(folder: Path) -> Trace:
    """The trace of the second process; the first one is its fork, which is not recorded."""
    (folder / "program.py").write_text(PROGRAM)
    (folder / "site-packages" / "accelerate").mkdir(parents=True)
    (folder / "site-packages" / "accelerate" / "__init__.py").write_text(ACCELERATE)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = warm.trace(folder, "--warmup", "0", "--steps", "0", "program.py", str(port))
    assert done.code == 0, done.err
    name, _, endings = OUTPUT.partition(".")
    (folder / f"{name}.rank1.{endings}").rename(folder / OUTPUT)
    trace = read_trace(folder / OUTPUT)
    assert not trace.of(Failure)
    return trace


CODES = "TPF604,TPF714,TPF921,TPF922,TPF923,TPF924,TPF926,TPF944"


def test_two_processes(tmp_path: Path) -> None:
    trace = _traced(tmp_path)
    assert observed(trace, "dist.all_reduce(first)") == {"collective.number": 8}
    assert observed(trace, "dist.barrier()") == {"collective.barrier": 8}
    assert observed(trace, "dist.barrier(group=alone)") == {"collective.alone": 8}
    assert observed(trace, "model = DDP")["ddp.all-used"] == 1
    assert observed(trace, "half = DDP")["ddp.unused"] == 1
    assert observed(trace, "loss.backward()")["backward.reduced-again"] == 4
    assert observed(trace, "model(x).mean().backward()")["backward.reduced"] == 8
    confirmed, refuted, free = Ruling.CONFIRMED, Ruling.REFUTED, Ruling.NO_COST
    assert verdicts(tmp_path, CODES) == {
        "loss.backward()": confirmed,
        "model(x).mean().backward()": refuted,
        "model = DDP(nn.Linear(4, 4), find_unused_parameters=True)": confirmed,
        "half = DDP(Half(), find_unused_parameters=True)": refuted,
        "wrapper = nn.DataParallel(nn.Linear(4, 4))": refuted,
        "model = DDP(torch.compile(model.module))": confirmed,
        "dist.all_reduce(first)": confirmed,
        "dist.barrier()": confirmed,
        "dist.barrier(group=alone)": free,
        "together = both.gather(x.detach())": confirmed,
        "apart = own.gather(x.detach())": free,
        "torch.save(model.state_dict(), path)": confirmed,
    }

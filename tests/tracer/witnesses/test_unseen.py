"""Findings that only a trace has, in real runs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tracer.witnesses.running import checked, observed, traced

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def found(folder: Path, code: str) -> dict[str, str]:
    """The findings of a rule in the program that was traced last: their verdicts by the text of their lines."""
    lines = (folder / "program.py").read_text().splitlines()
    findings = [each for each in checked(folder, code, "default") if each["code"] == code]
    assert all(each["verdict"]["ruling"] == "confirmed" for each in findings)
    return {lines[each["line"] - 1].strip(): each["verdict"]["why"] for each in findings}


REPEATED = """
from torch.utils.checkpoint import checkpoint


class Spiking(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.potential = 0.0

    def forward(self, x):
        self.potential = self.linear(x + self.potential).detach()
        return self.potential


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return self.second(self.first(x))


def hooked():
    layer = nn.Linear(8, 8).cuda()
    layer.register_forward_hook(lambda *_: None)
    return layer


def net():
    return nn.Linear(8, 8).cuda()


block, noisy, spiking, seen = Block().cuda(), nn.Sequential(net(), nn.Dropout()), Spiking().cuda(), hooked()
norm, modes, graph, perturbed, averaged = nn.Sequential(net(), nn.BatchNorm1d(8).cuda()), net(), net(), net(), net()
kept, rare, other, relu, saved = net(), net(), net(), nn.ReLU(), net()
optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
second = torch.optim.SGD(kept.parameters(), lr=0.1)
for step in range(8):
    x = torch.ones(4, 8, device="cuda")
    loss = block(x).sum()
    again = block(x).sum()  # repeated
    with torch.no_grad():
        fewer = block(x)
        thrice = [block(x) for _ in range(2)]  # repeated
    a = noisy(x) + noisy(x)
    b = spiking(x) + spiking(x)
    c = seen(x) + seen(x)
    d = norm(x) + norm(x)
    e = modes(x) + modes.eval()(x)
    modes.train()
    graph(x).sum().backward()
    graph(x).sum().backward()
    with torch.no_grad():
        f = perturbed(x)
        perturbed.weight.data.add_(0.1)
        f = perturbed(x)
        y = x.clone()
        g = averaged(y)
        y.mul_(2)
        g = averaged(y)
    kept(x).sum().backward()
    second.step()
    with torch.no_grad():
        h = other(x)
        h = other(x + 0)
        if step == 3:
            i = rare(x)
            i = rare(x)
        j = relu(x) + relu(x)
    (loss + again + checkpoint(saved, x.clone().requires_grad_(), use_reentrant=False).sum()).backward()
    optimizer.step()
"""


def test_repeated_forward(tmp_path: Path) -> None:
    trace = traced(tmp_path, REPEATED)
    assert observed(trace)["forward.watched"] == 3
    assert observed(trace, "# repeated")["forward.repeated"] == 6
    assert found(tmp_path, "TPF191") == {
        "again = block(x).sum()  # repeated": "a call of Block had equal arguments and weights in each of 3 steps",
        "thrice = [block(x) for _ in range(2)]  # repeated": (
            "2 calls of Block had equal arguments and weights in each of 3 steps"
        ),
    }


COLLECTED = """
import gc

gc.disable()
keep = [{} for _ in range(400_000)]
model = nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    if step in COLLECTS:
        gc.collect()
    gc.collect(1)
gc.collect()
"""


@pytest.mark.parametrize(("collects", "pauses"), [("range(3, 10)", True), ("[5]", False)])
def test_collector_pause(tmp_path: Path, collects: str, pauses: bool) -> None:
    trace = traced(tmp_path, COLLECTED.replace("COLLECTS", collects), simulate=False)
    assert observed(trace)["collector.full"] == (8 if pauses else 2)
    verdicts = found(tmp_path, "TPF192")
    assert list(verdicts) == (["gc.collect()"] if pauses else [])
    assert all("0.6 times a step" in why for why in verdicts.values())


def test_simulated_steps_do_not_time_collections(tmp_path: Path) -> None:
    traced(tmp_path, COLLECTED.replace("COLLECTS", "range(3, 10)"))
    assert not found(tmp_path, "TPF192")


CAST = """
class Layer(nn.Module):
    def __init__(self, trains=True):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8, 8), requires_grad=trains)


trained, frozen, teacher, mixed = Layer().cuda(), Layer(False).cuda(), Layer(False).cuda(), Layer().cuda()
optimizer = torch.optim.SGD([*trained.parameters(), *mixed.parameters()], lr=0.1, foreach=True)
for step in range(6):
    x = torch.ones(2, 8, device="cuda", dtype=torch.bfloat16)
    once = trained.weight.to(torch.bfloat16)
    same = frozen.weight.bfloat16()
    average = teacher.weight.half()
    wider = frozen.weight.to(torch.float64)
    turns = [x @ mixed.weight.to(x.dtype) for _ in range(3)]
    (x @ once + sum(turns)).sum().backward()
    optimizer.step()
    teacher.weight.data.mul_(0.9)
    if step == 3:
        seldom = [frozen.weight.to(torch.float16) for _ in range(2)]
"""


def test_weight_casts(tmp_path: Path) -> None:
    trace = traced(tmp_path, CAST)
    assert observed(trace, "once = ")["weight.cast-first"] == 6
    assert observed(trace, "average = ")["weight.cast-first"] == 6
    assert observed(trace, "turns = ")["weight.cast-again"] == 12
    assert found(tmp_path, "TPF193") == {
        "same = frozen.weight.bfloat16()": (
            "unchanged weights were cast again 0.83 times a step: 107 bytes were written in each"
        ),
        "turns = [x @ mixed.weight.to(x.dtype) for _ in range(3)]": (
            "unchanged weights were cast again 2 times a step: 256 bytes were written in each"
        ),
    }


CHECKPOINTED = """
from torch.utils.checkpoint import checkpoint

block = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).cuda()
optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
for step in range(3):
    x = torch.ones(4, 8, device="cuda", requires_grad=True)
    checkpoint(block, x, use_reentrant=False).sum().backward()
    with torch.no_grad():
        y = checkpoint(block, x, use_reentrant=False)
    optimizer.step()
"""


def test_checkpoints(tmp_path: Path) -> None:
    trace = traced(tmp_path, CHECKPOINTED)
    assert observed(trace, "backward()")["recomputation.called"] == 3
    assert observed(trace, "y = ")["recomputation.off"] == 3
    assert not found(tmp_path, "TPF194"), "a simulated GPU has no memory"

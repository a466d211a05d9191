"""Optimizers, gradients and loops over parameters in real runs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.findings import Ruling
from tests.tracer import warm
from tests.tracer.witnesses.running import HEAD, observed, traced, verdicts

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
PROGRAM = """
def net():
    return nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)).cuda()


def average(slow, fast):
    with torch.no_grad():
        for old, new in zip(slow.parameters(), fast.parameters()):
            old.mul_(0.9).add_(new, alpha=0.1)


def single(slow, fast):
    with torch.no_grad():
        for old, new in zip(slow[:1].cpu().parameters(), fast[:1].cpu().parameters()):
            old.lerp_(new, 0.1)


model, slow, other, spare = net(), net(), net(), net()
plain = torch.optim.AdamW(model.parameters(), lr=0.001)
fused = torch.optim.Adam(other.parameters(), 0.001)
fused.param_groups[0].update(fused=True, foreach=False)
loop = torch.optim.Adam(spare.parameters(), foreach=False)
counting = torch.optim.NAdam(other.parameters(), capturable=True)
for step in range(4):
    x = torch.ones(2, 8, device="cuda")
    plain.zero_grad(set_to_none=False)
    fused.zero_grad(set_to_none=False) if step == 0 else None
    (model(x) + other(x) + spare(x)).sum().backward()
    plain.step()
    fused.step()
    loop.step()
    counting.step()
    average(slow, model)
for p in model.parameters():
    p.grad.zero_()
single(net(), net())
"""


def test_optimizers(tmp_path: Path) -> None:
    trace = traced(tmp_path, PROGRAM)
    assert observed(trace, "plain = ") == {"optimizer.foreach": 4, "optimizer.counters-on-cpu": 4}
    assert observed(trace, "fused = ") == {"optimizer.fused": 4}
    assert observed(trace, "loop = ") == {"optimizer.one-by-one": 4, "optimizer.counters-on-cpu": 4}
    assert observed(trace, "counting = ") == {"optimizer.foreach": 4, "optimizer.capturable": 4}
    assert observed(trace, "plain.zero_grad") == {"gradients.freed": 1, "gradients.zeroed": 3}
    assert observed(trace, "old.mul_") == {"tensor.updated-gpu": 48}
    unfused = {line.partition(" ")[0]: ruling for line, ruling in verdicts(tmp_path, "TPF601").items()}
    assert unfused == {"plain": Ruling.CONFIRMED, "fused": Ruling.REFUTED, "loop": Ruling.CONFIRMED}
    zeroed = verdicts(tmp_path, "TPF602")
    assert zeroed["plain.zero_grad(set_to_none=False)"] is Ruling.CONFIRMED
    assert zeroed["fused.zero_grad(set_to_none=False) if step == 0 else None"] is Ruling.REFUTED
    assert zeroed["p.grad.zero_()"] is Ruling.CONFIRMED
    loops = verdicts(tmp_path, "TPF603")
    assert loops["for old, new in zip(slow.parameters(), fast.parameters()):"] is Ruling.CONFIRMED
    counted = verdicts(tmp_path, "TPF607")
    assert list(counted.values()) == [Ruling.CONFIRMED]


LOADED = """
model = nn.Linear(8, 8).cuda()
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(2, 8, device="cuda")).sum().backward()
optimizer.step()
torch.save(optimizer.state_dict(), "state.pt")
optimizer.load_state_dict(torch.load("state.pt", map_location="cuda"))
for state in optimizer.state.values():
    state["step"] = state["step"].DEVICE()
for step in range(3):
    model(torch.ones(2, 8, device="cuda")).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("device", "ruling"), [("cuda", Ruling.CONFIRMED), ("cpu", Ruling.REFUTED)])
def test_counters_of_a_loaded_state(tmp_path: Path, device: str, ruling: Ruling) -> None:
    traced(tmp_path, LOADED.replace("DEVICE", device))
    found = verdicts(tmp_path, "TPF608")
    assert found['optimizer.load_state_dict(torch.load("state.pt", map_location="cuda"))'] is ruling


ENDED = """
model = nn.Linear(8, 8)
optimizer = torch.optim.Adam(model.parameters())
from torch.optim.optimizer import register_optimizer_step_post_hook
register_optimizer_step_post_hook(lambda *_: None)
for step in range(6):
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
print("went on")
"""


def test_a_session_may_end_within_a_hook(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(HEAD + ENDED)
    done = warm.trace(tmp_path, "--warmup", "1", "--steps", "2", "--window", "0", "program.py")
    assert (done.code, done.out) == (0, "went on\n"), done.err

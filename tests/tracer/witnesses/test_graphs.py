"""Autograd graphs: retained, kept and checkpointed ones, and gradients that nothing reads."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.findings import Ruling
from tests.tracer.witnesses.running import observed, traced, verdicts

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
C, N, R = Ruling.CONFIRMED, Ruling.NO_COST, Ruling.REFUTED
GRAPHS = """
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
frozen = nn.Linear(8, 8).requires_grad_(False)
hidden = model(torch.ones(1, 8))
batches = [torch.ones(4, 8) for _ in range(8)]


def again(loss):
    gradients = torch.autograd.grad
    gradients(loss, model[0].weight)


def retain(loader, optimizer):
    for x in loader:
        loss = model(x).mean()
        loss.backward(retain_graph=True)  # needless
        optimizer.step()


def retain_for_more(loader, optimizer):
    for x in loader:
        loss = model(x).mean()
        loss.backward(retain_graph=True)  # needed
        again(loss)
        optimizer.step()


def total(loader, optimizer):
    running = 0.0
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        running += loss  # kept
    return running.item()


def last(loader, optimizer):
    losses = []
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss)  # cleared
        losses.clear()


def checkpoints(loader, optimizer):
    for x in loader:
        given = x.clone().requires_grad_()
        checkpoint(model, given)  # reentrant
        checkpoint_sequential(model, 2, given)  # in parts
        checkpoint(model, x)  # no gradient comes in
        checkpoint(frozen, x)  # frozen
        checkpoint(model, given, use_reentrant=False)  # new form
        with torch.autocast("cpu", torch.bfloat16):
            checkpoint(model, given)  # autocast
        model(x).sum().backward()
        optimizer.step()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for each in (retain, retain_for_more, total, last, checkpoints):
    each(batches, optimizer)
"""


def test_graphs(tmp_path: Path) -> None:
    trace = traced(tmp_path, GRAPHS, simulate=False)
    assert "backward.graph-not-used-again" in observed(trace, "# needless")
    assert observed(trace, "# needed")["backward.graph-used-again"] == 8
    assert observed(trace, "# reentrant")["checkpoint.reentrant"] == 8
    assert observed(trace, "# new form")["checkpoint.other-form"] == 8
    rulings = verdicts(tmp_path, "TPF210,TPF305,TPF307")
    assert {text.partition("# ")[2]: ruling for text, ruling in rulings.items()} == {
        "needless": C,
        "needed": R,
        "kept": C,
        "cleared": R,
        "reentrant": C,
        "in parts": C,
        "no gradient comes in": C,
        "frozen": R,
        "autocast": N,
    }


HEAD_ONLY = """
model = nn.Sequential()
model.body = nn.Linear(8, 8)
model.fc = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.1)  # head
for _ in range(4):
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
"""
MISSPELT = """
model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4))
others = nn.Linear(8, 8)
others.requires_grad_(False)
for p in model[0].parameters():
    p.require_grad = False  # misspelt
for p in others.parameters():
    p.requires_grads = False  # frozen all the same
model[1].requires_grad = False  # of a module
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    model(others(torch.ones(4, 8))).sum().backward()
    optimizer.step()
"""
ALL_READ = HEAD_ONLY.replace("\nfor", '\noptimizer.add_param_group({"params": model.body.parameters()})\nfor').replace(
    "add_param_group", "__getattribute__('add_' + 'param_group')"
)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (HEAD_ONLY, {"head": C}),
        (ALL_READ, {"head": R}),
        (MISSPELT, {"misspelt": C, "frozen all the same": R, "of a module": C}),
    ],
    ids=["head", "all read", "misspelt"],
)
def test_gradients(tmp_path: Path, program: str, expected: dict[str, Ruling]) -> None:
    traced(tmp_path, program, simulate=False)
    rulings = verdicts(tmp_path, "TPF308")
    assert {text.partition("# ")[2]: ruling for text, ruling in rulings.items()} == expected

"""The reasons for findings: the tensor comes from code that control flow may lead from."""

from __future__ import annotations

import pytest

from perflint.config.settings import Profile
from tests.engine.test_places import found

BRANCHES = """
import torch

def send(fast: bool, model: torch.nn.Module):
    for _ in range(1000):
        x = torch.randn(8, 16)
        if fast:
            x = x.pin_memory().to("cuda", non_blocking=True)
        else:
            x = x.to("cuda")
        model(x).sum().backward()
"""
EARLY = """
import torch

def send(kind: str):
    x = torch.randn(8)
    if kind == "sent":
        x = x.to("cuda", non_blocking=True)
        return x
    return x.to("cuda")
"""
SUM = """
import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader):
    total = 0
    for x, y in loader:
        total += model(x.cuda()).sum()
        print(total.item())
"""
OWN_SUM = """
import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader):
    total = 0.0
    for x, y in loader:
        total = total + model(x.cuda()).sum()
        print(total.item())
"""
DICT = """
import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader):
    scores = {}
    for x, y in loader:
        scores["last"] = model(x.cuda()).sum()
        print(scores["last"].item())
"""
ITERATOR = """
import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader):
    batches = iter(loader)
    for _ in range(1000):
        x, y = next(batches)
        model(x.cuda()).sum().backward()
"""
BAR = """
import torch
from tqdm import tqdm

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader):
    bar = tqdm(enumerate(loader))
    for step, (x, y) in bar:
        model(x.cuda()).sum().backward()
"""
COMPUTED = """
import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader):
    for x, y in loader:
        y = y.cuda()
        wrong = model(x.cuda()) - y
        if (y > 0).any():
            wrong.sum().backward()
"""

PAIRS = """
import torch

def train(model: torch.nn.Module, first: torch.utils.data.DataLoader, other: torch.utils.data.DataLoader):
    optimizer = torch.optim.SGD(model.parameters())
    for step, ((a, _), (x, _)) in enumerate(zip(first, other)):
        model(x.cuda()).sum().backward()
        optimizer.step()
"""


PASSED = """
import torch

def send(x):
    return x.cuda().sum()

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader):
    for batch in loader:
        send(torch.ones(3))
        model(batch).sum().backward()

send(torch.ones(3, device="cuda"))
"""
STATE = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        z = (self.w * 2).sum()
        return z.item()
"""
CLASS = """
import torch

class Table:
    a = torch.ones(3)
    b = a.cuda()
"""


@pytest.mark.parametrize(
    ("program", "code", "why"),
    [
        (BRANCHES, "TPF201", "`x`: made by `torch.randn(…)` on line 6, on the CPU"),
        (EARLY, "TPF201", "`x`: made by `torch.randn(…)` on line 5, on the CPU"),
        (SUM, "TPF101", "`total`: computed from the result of `model(…)` on line 7, on the GPU"),
        (OWN_SUM, "TPF101", "`total`: computed from the result of `model(…)` on line 7, on the GPU"),
        (DICT, "TPF101", "`scores`: computed from the result of `model(…)` on line 7, on the GPU"),
        (ITERATOR, "TPF201", "`x`: from a batch of `loader` (line 7), on the CPU"),
        (BAR, "TPF201", "`x`: from a batch of `loader` (line 7), on the CPU"),
        (PAIRS, "TPF201", "`x`: from a batch of `other` (line 6), on the CPU"),
        (PASSED, "TPF201", "`x`: line 9 passes `torch.ones(3)`, on the CPU"),
        (STATE, "TPF101", "`z`: computed from `self.w`, state of the object, on the device of the model"),
        (CLASS, "TPF201", "`a`: bound on line 5, on the CPU"),
        (COMPUTED, "TPF105", "`y`: moved by `.cuda()` on line 6, on the GPU"),
    ],
)
def test_a_reason_cites_the_code_that_the_tensor_comes_from(program: str, code: str, why: str) -> None:
    (finding,) = found(program, code, Profile.AUDIT)
    assert (finding.why or "").partition("; ")[0] == why


LOOPS = """
import torch

def act(env, x: torch.Tensor):
    for _ in range(1000):
        env.step(x.argmax().item())

def train(optimizer, x: torch.Tensor):
    for _ in range(1000):
        optimizer.step()
        print(x.item())
"""


def test_the_call_that_makes_a_loop_hot_is_named() -> None:
    heats = [(finding.why or "").partition("; ")[2] for finding in found(LOOPS, "TPF101", Profile.AUDIT)]
    assert heats == ["the loop on line 5 runs `env.step`", "the loop on line 9 runs `optimizer.step`"]


def test_code_that_runs_when_something_fails() -> None:
    head = "import torch\n\ndef f(x: torch.Tensor):\n    try:\n        g()\n"
    (finding,) = found(f"{head}    except ValueError:\n        print(x.item())\n", "TPF101", Profile.AUDIT)
    assert (finding.why or "").endswith("; runs only when something fails")

"""What a program passes on through files in between."""

from __future__ import annotations

from pathlib import Path

from tests.semantics.callers.programs import programs
from tests.semantics.notation import Case, check

PASSED_ON = """
# file: losses.py
from torch import nn
class Loss(nn.Module):
    def forward(self, outputs, targets):
        targets                     # -> list[dict[cuda]]
        return sum(t["labels"].sum() for t in targets)
# file: engine.py
def train(criterion, model, loader):
    for x, targets in loader:
        targets = [{k: v.cuda() for k, v in t.items()} for t in targets]
        criterion(model(x), targets)
# file: main.py
import torch
from torch.utils.data import DataLoader
from losses import Loss
from engine import train
train(Loss(), torch.nn.Linear(3, 3), DataLoader(data))
===
# file: losses.py
from torch import nn
class Loss(nn.Module):
    def forward(self, outputs, weight):
        weight                      # -> cpu float 1
# file: models/__init__.py
from losses import Loss
def build(size):
    return torch.nn.Linear(size, size), Loss()
# file: engine.py
import torch
def train(criterion, model, x):
    criterion(model(x), torch.ones(3))
# file: main.py
from models import build
from engine import train
model, criterion = build(3)
train(criterion, model, 3)
===
# file: ops.py
def third(x):
    return x                        # -> cuda float 1
# file: middle.py
from ops import third
def second(x):
    return third(x)
# file: main.py
import torch
from middle import second
second(torch.ones(3, device="cuda"))
===
# file: buffers.py
class Buffer:
    def add(self, state):
        state                       # -> cuda float 1
# file: policies.py
class Policy:
    def train(self, buffer, state):
        buffer.add(state)
# file: runs.py
class Runner:
    def __init__(self, policy):
        self.policy = policy
    def run(self, buffer, state):
        self.policy.train(buffer, state)
# file: main.py
import torch
from buffers import Buffer
from policies import Policy
from runs import Runner
Runner(Policy()).run(Buffer(), torch.ones(3, device="cuda"))
"""


@programs(PASSED_ON)
def test_passed_on(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)

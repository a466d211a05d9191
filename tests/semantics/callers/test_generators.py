"""Generators run as often as the loops over their results."""

from __future__ import annotations

from pathlib import Path

from tests.semantics.callers.programs import programs
from tests.semantics.notation import Case, check

_STEP = """
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
"""

HOT = f"""
# file: main.py
def batches(data):
    size = data.size.item()                 # warm
    for x in data:
        yield x.item()                      # hot
def train(model, data, optimizer):
    for x in batches(data):{_STEP}
===
# file: main.py
from tqdm import tqdm
def batches(data):
    while True:
        x = data.take().item()              # hot
        yield x
def train(model, data, optimizer):
    for i, x in enumerate(tqdm(batches(data), total=3)):{_STEP}
===
# file: main.py
def batches(data):
    for x in data:
        yield x.item()                      # hot
def train(model, data, optimizer):
    found = batches(data)
    for x in found:{_STEP}
===
# file: store.py
class Store:
    def batches(self, size):
        total = self.data.sum().item()      # warm
        for i in range(size):
            yield self.data[i].item()       # hot
# file: main.py
from store import Store
def train(model, optimizer):
    store = Store()
    for x in store.batches(3):{_STEP}
===
# file: store.py
class Store:
    def batches(self, size):
        for i in range(size):
            yield self.data[i].item()       # hot
# file: agent.py
class Agent:
    def update(self, store):
        for epoch in range(self.epochs):
            batches = store.batches(3)
            for x in batches:
                loss = self.model(x.cuda()).sum()
                loss.backward()
                self.optimizer.step()
# file: main.py
from store import Store
from agent import Agent
Agent().update(Store())
===
# file: main.py
def batches(data):
    for x in data:
        yield x.item()                      # warm
def main(model, data, optimizer):
    found = list(batches(data))
    for x in found:{_STEP}
if __name__ == "__main__":
    main(1, 2, 3)
===
# file: main.py
import contextlib
@contextlib.contextmanager
def timed(x):
    print(x.item())                         # hot
    yield
def train(model, data, optimizer):
    for x in data:
        with timed(x):
            pass{_STEP}
"""


@programs(HOT)
def test_generators(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)

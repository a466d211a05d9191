"""Methods of objects that a program hands to functions of files which do not import their class."""

from __future__ import annotations

from pathlib import Path

from tests.semantics.callers.programs import programs
from tests.semantics.notation import Case, check

_STEP = """
    def train(self, buffer, size):
        loss = self.net(buffer.sample(size)).sum()
        loss.backward()
        self.optimizer.step()
"""

HANDED = f"""
# file: buffers.py
class Buffer:
    def sample(self, size):
        return self.data[size].item()       # hot
    def load(self, path):
        return self.data[path].item()       # warm
# file: agent.py
class Agent:{_STEP}
# file: main.py
import buffers, agent
buffer = buffers.Buffer()
agent.Agent().train(buffer, 3)
===
# file: buffers.py
class Buffer:
    def sample(self, size):
        return self.data[size].item()       # hot
# file: agent.py
class Agent:{_STEP}
# file: main.py
from buffers import Buffer
from agent import Agent
Agent().train(size=3, buffer=Buffer())
===
# file: buffers.py
class Base:
    def sample(self, size):
        return self.data[size].item()       # hot
# file: agent.py
class Agent:{_STEP}
# file: main.py
from buffers import Base
from agent import Agent
class Buffer(Base):
    pass
Agent().train(Buffer(), 3)
===
# file: buffers.py
class Buffer:
    def sample(self, size):
        return self.data[size].item()       # hot
# file: agent.py
class Agent:
    def __init__(self, buffer):
        self.buffer = buffer
    def train(self):
        loss = self.net(self.buffer.sample(3)).sum()
        loss.backward()
        self.optimizer.step()
# file: main.py
from buffers import Buffer
from agent import Agent
Agent(Buffer()).train()
===
# file: buffers.py
class Buffer:
    def sample(self, size):
        return self.data[size].item()       # hot
# file: agent.py
def train(agent, buffer):
    update(agent, buffer)
def update(agent, store):
    loss = agent.net(store.sample(3)).sum()
    loss.backward()
    agent.optimizer.step()
# file: main.py
from buffers import Buffer
from agent import train
train(None, Buffer())
===
# file: meters.py
class Meter:
    def __call__(self, loss):
        self.sum += loss.item()             # hot
# file: engine.py
def train(model, loader, optimizer, meter):
    for x, y in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        meter(loss)
# file: main.py
from meters import Meter
from engine import train
train(model, loader, optimizer, Meter())
===
# file: buffers.py
class Buffer:
    def sample(self, size):
        return self.data[size].item()       # warm
# file: agent.py
class Agent:{_STEP}
# file: main.py
from buffers import Buffer
from agent import Agent
class Other:
    def sample(self, size): ...
Buffer()
Agent().train(Other(), 3)
===
# file: buffers.py
class Buffer:
    def sample(self, size):
        return self.data[size].item()       # hot
# file: agent.py
class Agent:
    def train(self, buffer, size):
        buffer = self.wrapped(buffer)
        loss = self.net(buffer.sample(size)).sum()
        loss.backward()
        self.optimizer.step()
# file: main.py
from buffers import Buffer
from agent import Agent
Agent().train(Buffer(), 3)
"""


@programs(HANDED)
def test_methods_of_handed_objects(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


ARGUMENTS = """
# file: meters.py
class Meter:
    def update(self, value):
        value                               # -> cuda float 0
# file: engine.py
import torch
def train(meter):
    meter.update(torch.ones(2, device="cuda").sum())
# file: main.py
from meters import Meter
from engine import train
train(Meter())
===
# file: meters.py
class Meter:
    def update(self, value):
        value                               # -> cuda float 0
# file: engines/__init__.py
from .plain import train
# file: engines/plain.py
import torch
def train(meter):
    meter.update(torch.ones(2, device="cuda").sum())
# file: main.py
import engines
from meters import Meter
engines.train(Meter())
===
# file: meters.py
class Meter:
    def update(self, value):
        value                               # -> ?
# file: engine.py
def train(meter):
    meter.update(None)
# file: others.py
def train(meter, value):
    meter.update(value)
# file: main.py
from meters import Meter
from engine import train
train(Meter())
===
# file: meters.py
class Meter:
    def update(self, value):
        value                               # -> None
# file: engine.py
def train(meter):
    meter.update(None)
# file: main.py
from meters import Meter
from engine import train
train(Meter())
===
# file: meters.py
class Meter:
    def _update(self, value):
        value                               # -> None
    def show(self):
        self._update(None)
# file: main.py
from meters import Meter
Meter().show()
"""


@programs(ARGUMENTS)
def test_arguments_of_their_methods(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)

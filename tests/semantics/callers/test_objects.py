"""Objects that other files make: the arguments of their constructors, and the attributes that these set."""

from __future__ import annotations

from pathlib import Path

from tests.semantics.callers.programs import programs
from tests.semantics.notation import Case, check

MADE = """
# file: trainer.py
class Trainer:
    def __init__(self, net, loader, opt, device, limit=1.0):
        net                         # -> Linear(in_features=3, out_features=3)
        self.net = net
        self.loader = loader
        self.opt = opt
        self.device = device
        self.limit = limit
    def fit(self):
        self.net                    # -> Linear(in_features=3, out_features=3)
        self.opt.step()             # calls torch.optim.Optimizer.step
        self.device                 # -> device cuda
        self.limit                  # -> float
        for batch in self.loader:   # -> batch[cpu]
            batch[0].to(self.device) # -> cuda
            batch[0].item()         # hot
    def other(self):
        self.fit()
# file: main.py
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from trainer import Trainer
net = nn.Linear(3, 3)
loader = DataLoader(TensorDataset(a, b))
trainer = Trainer(net, loader, torch.optim.SGD(net.parameters(), lr=0.1), torch.device("cuda"), limit=2.0)
trainer.fit()
===
# file: store.py
class Store:
    def __init__(self, table):
        self.table = table
    def read(self):
        self.table                  # -> cuda float 1
        return self.table.sum()     # -> cuda float 0
# file: main.py
import torch
from store import Store
Store(torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self, **kwargs):
        self.table = kwargs["table"]
    def read(self):
        self.table                  # -> cuda float 1
# file: main.py
import torch
from store import Store
Store(table=torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self, table):
        self._table = table
    @property
    def table(self):
        self._table                 # -> cuda float 1
        return self._table
    def read(self):
        self.table                  # -> cuda float 1
# file: main.py
import torch
from store import Store
Store(torch.rand(3, device="cuda"))
===
# file: store.py
class Base:
    def __init__(self, table):
        self.table = table
    def read(self):
        self.table                  # -> cuda float 1
# file: own.py
from store import Base
class Own(Base):
    pass
# file: main.py
import torch
from own import Own
Own(torch.rand(3, device="cuda"))
===
# file: store.py
class Base:
    def __init__(self, table):
        self.table = table
    def read(self):
        self.table                  # -> cuda float 1
# file: own.py
import torch
from store import Base
class Own(Base):
    def __init__(self):
        super().__init__(torch.rand(3, device="cuda"))
===
# file: own.py
from store import Base
class Own(Base):
    def read(self):
        self.table                  # -> cuda float 1  # fails: the constructor is in a file that is not checked
# file: store.py
class Base:
    def __init__(self, table):
        self.table = table
# file: main.py
import torch
from own import Own
Own(torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self):
        self.items = []
    def push(self, x):
        self.items.append(x)
    def read(self):
        for item in self.items:
            item                    # -> cuda float 1
# file: main.py
import torch
from store import Store
store = Store()
store.push(torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self):
        self.total = 0
    def push(self, x):
        self.total = self.total + x
    def read(self):
        self.total                  # -> 0 | cuda float 1
# file: main.py
import torch
from store import Store
store = Store()
store.push(torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self):
        self.values = {}
    def push(self, **values):
        for key, value in values.items():
            self.values[key] = value
    def read(self):
        for value in self.values.values():
            value                   # -> cuda float 1 | ?
# file: main.py
import torch
from store import Store
store = Store()
store.push(loss=torch.rand(3, device="cuda"))
===
# file: store.py
class Rollout:
    rewards = None
    def read(self):
        self.rewards                # -> cuda float 1 | None  # fails: what other files assign is not known
# file: main.py
import torch
from store import Rollout
rollout = Rollout()
rollout.rewards = torch.rand(3, device="cuda")
===
# file: store.py
import dataclasses
from typing import Any
@dataclasses.dataclass
class Batch:
    x: Any
    def read(self):
        self.x                      # -> cuda float 1  # fails: a record has no constructor to run
# file: main.py
import torch
from store import Batch
Batch(torch.rand(3, device="cuda"))
===
# file: store.py
import dataclasses
@dataclasses.dataclass
class Config:
    device: str = "cuda"
    width: int = 3
# file: use.py
import torch
from store import Config
def f(config: Config):
    config.width                    # -> int=3
    torch.rand(3, device=config.device) # -> cuda float 1
===
# file: trainer.py
class Trainer:
    def __init__(self, config):
        self.config = config
    def run(self):
        self.config.width           # -> int=3
# file: config.py
import dataclasses
@dataclasses.dataclass
class Config:
    width: int = 3
# file: main.py
from config import Config
from trainer import Trainer
Trainer(Config())
===
# file: hooks.py
class Runner:
    def __init__(self, hooks):
        self.hooks = hooks
    def run(self, x):
        for hook in self.hooks:
            hook                    # -> Log()
            hook.note(x)            # calls logs.Log.note
# file: logs.py
class Log:
    def note(self, x):
        pass
# file: main.py
from hooks import Runner
from logs import Log
Runner([Log()])
===
# file: net.py
from torch import nn
class Head(nn.Module):
    def __init__(self, body, act):
        super().__init__()
        self.body = body
        self.act = act
    def forward(self, x):
        self.body                   # -> Conv2d(in_channels=3, out_channels=3, kernel_size=1)
        self.act                    # -> ReLU()
        return self.act(self.body(x)) # -> model float
# file: main.py
from torch import nn
from net import Head
Head(nn.Conv2d(3, 3, 1), nn.ReLU())
===
# file: net.py
from torch import nn
class Head(nn.Module):
    def __init__(self, width, bias):
        super().__init__()
        self.width = width
        self.fc = nn.Linear(width, 3, bias=bias)
    def forward(self, x):
        self.width                  # -> int
        self.fc                     # -> Linear(in_features=int, out_features=3, bias=bool)
# file: main.py
from net import Head
Head(3, False)
===
# file: store.py
class Store:
    def __init__(self, table, size):
        self.table = table
        self.size = size
    @classmethod
    def of(cls, table):
        table                       # -> cuda float 1
        return cls(table, 3)
    def read(self):
        self.table                  # -> cuda float 1
# file: main.py
import torch
from store import Store
Store.of(torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self, table):
        self.table = table
    def read(self):
        self.table                  # -> cuda float 1
# file: main.py
import functools, torch
from store import Store
make = functools.partial(Store, torch.rand(3, device="cuda"))
make()
===
# file: store.py
class Store:
    def __init__(self, table):
        self.table = table
    def read(self):
        self.table                  # -> cuda float 1
# file: main.py
import torch
from store import Store
CLASSES = {"store": Store}
CLASSES["store"](torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self, table):
        self.set(table)
    def set(self, table):
        self.table = table
    def read(self):
        self.table                  # -> cuda float 1
# file: main.py
import torch
from store import Store
Store(torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def set(self, table):
        self.table = table
    def read(self):
        self.table                  # -> cuda float 1
# file: main.py
import torch
from store import Store
Store().set(torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self, table):
        self.table = table.cpu()
    def read(self):
        self.table                  # -> cpu float 1
# file: main.py
import torch
from store import Store
Store(torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self, x, device):
        self.x = x.to(device)
    def read(self):
        self.x                      # -> cuda float 1
# file: main.py
import torch
from store import Store
Store(torch.rand(3), "cuda")
===
# file: store.py
class Store:
    def __init__(self, table):
        self.table = table
class User:
    def __init__(self, store):
        self.store = store
    def read(self):
        self.store.table            # -> cuda float 1
# file: main.py
import torch
from store import Store, User
User(Store(torch.rand(3, device="cuda")))
"""


@programs(MADE)
def test_made(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


NOT_MADE = """
# file: store.py
class Store:
    def __init__(self, table):
        self.table = table
    def read(self):
        self.table                  # -> ?
# file: main.py
import torch
from store import Store
class Other:
    def __init__(self, table): pass
Other(torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self, table):
        self.table = table
    def read(self):
        self.table                  # -> ?
# file: main.py
import torch
from store import Store
Store(torch.rand(3, device="cuda"))
Store(unknown())
===
# file: store.py
class Store:
    def __init__(self, table):
        self.table = table
    def read(self):
        self.table                  # -> ?
# file: test_store.py
import pytest, torch
from store import Store
Store(torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self, table=None):
        self.table = table
    def read(self):
        self.table                  # -> cuda float 1 | None
# file: main.py
import torch
from store import Store
Store(torch.rand(3, device="cuda"))
Store()
===
# file: store.py
class Store:
    def __init__(self, table):
        self.table = table
    def clear(self):
        self.table = None
    def read(self):
        self.table                  # -> cuda float 1 | None
# file: main.py
import torch
from store import Store
Store(torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self, table):
        self.size = len(table)
    def read(self):
        self.table                  # -> ?
        self.size                   # -> int
# file: main.py
import torch
from store import Store
Store(torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self, table: int):
        self.table = table
    def read(self):
        self.table                  # -> int
# file: main.py
import torch
from store import Store
Store(torch.rand(3, device="cuda"))
===
# file: store.py
class A:
    def __init__(self, x):
        self.x = x
    def read(self):
        self.x                      # -> ?
class B(A):
    def __init__(self, x):
        self.x = x
    def read(self):
        self.x                      # -> cuda float 1
# file: main.py
import torch
from store import A, B
B(torch.rand(3, device="cuda"))
===
# file: store.py
class Store:
    def __init__(self, table):
        self.table = table
    def read(self):
        self.table                  # -> tensor float 1
# file: main.py
import torch
from store import Store
Store(torch.rand(3, device="cuda"))
# file: other.py
import torch
from store import Store
Store(torch.rand(3))
===
# file: a/store.py
class Store:
    def __init__(self, table):
        self.table = table
    def read(self):
        self.table                  # -> ?
# file: b/store.py
class Store:
    def __init__(self, table):
        self.table = table
# file: b/main.py
import torch
from store import Store
Store(torch.rand(3, device="cuda"))
"""


@programs(NOT_MADE)
def test_not_made(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


ASSIGNED = """
# file: config.py
import torch
device = torch.device("cpu")
class Config:
    DEVICE = torch.device("cpu")
    name = "cpu"
    other = "cpu"
# file: ops.py
import torch, config
from config import Config
def f():
    torch.ones(2, device=config.device)     # -> caller float 1
    torch.ones(2, device=Config.DEVICE)     # -> caller float 1
    torch.ones(2, device=Config.name)       # -> caller float 1
    torch.ones(2, device=Config.other)      # -> cpu float 1
# file: main.py
import config, ops, sys
config.device = sys.argv[1]
config.Config.DEVICE = sys.argv[1]
def main(name):
    config.Config.name = name
    print(config.Config.other == name)
"""


@programs(ASSIGNED)
def test_devices_that_other_code_assigns(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)

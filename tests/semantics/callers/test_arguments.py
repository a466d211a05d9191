"""Values that other files pass to functions."""

from __future__ import annotations

from pathlib import Path

from tests.semantics.callers.programs import programs
from tests.semantics.notation import Case, check

PASSED = """
# file: ops.py
def f(x):
    x                               # -> cuda float 1 | ?
# file: main.py
import torch
from ops import f
f(unknown())
f(torch.rand(3, device="cuda"))
===
# file: ops.py
def f(a, b=1, *rest, c=None, **more):
    a                               # -> cuda float 1
    b                               # -> cpu float 2 | int=1
    rest[0]                         # -> cuda int 1
    c                               # -> cuda bool 1
    more["d"]                       # -> cuda float 1
# file: main.py
import torch
from ops import f
f(torch.rand(3, device="cuda"), torch.rand(3, 3), torch.arange(3, device="cuda"),
  c=torch.rand(3, device="cuda") > 0, d=torch.rand(3, device="cuda"))
===
# file: ops.py
def f(*args):
    for each in args:
        each                        # -> cuda float
# file: main.py
import torch
from ops import f
x = torch.rand(3, device="cuda")
f(x, x[0])
===
# file: ops.py
def f(*args, **kwargs):
    args[0]                         # -> cuda float 1
    g(*args)
    h(**kwargs)
def g(x):
    x                               # -> cuda float 1  # fails: an unpacked tuple of any length has no positions
def h(y):
    y                               # -> cuda float 1
# file: main.py
import torch
from ops import f
f(torch.rand(3, device="cuda"), y=torch.rand(3, device="cuda"))
===
# file: ops.py
def f(x, y):
    x                               # -> cuda float 1
    y                               # -> cpu float 1
# file: main.py
import torch
from ops import f
pair = (torch.rand(3, device="cuda"), torch.rand(3))
f(*pair)
===
# file: ops.py
def f(x, y):
    x                               # -> cuda float 1
    y                               # -> cpu float 1
# file: main.py
import torch
from ops import f
given = {"x": torch.rand(3, device="cuda"), "y": torch.rand(3)}
f(**given)
===
# file: ops.py
def f(x, y):
    x                               # -> cuda float 1
    y                               # -> cpu float 1
# file: main.py
import functools, torch
from ops import f
g = functools.partial(f, torch.rand(3, device="cuda"))
g(torch.rand(3))
===
# file: ops.py
def f(x, y):
    x                               # -> cuda float 1
    y                               # -> cpu float 1
# file: main.py
import functools, torch
from ops import f
g = functools.partial(f, y=torch.rand(3))
g(torch.rand(3, device="cuda"))
===
# file: ops.py
class Meter:
    def note(self, x):
        x                           # -> cuda float 1
# file: main.py
import torch
from ops import Meter
note = Meter().note
note(torch.rand(3, device="cuda"))
===
# file: ops.py
class Meter:
    def note(self, x):
        x                           # -> cuda float 1
# file: main.py
import torch
from ops import Meter
meters = {"a": Meter()}
for meter in meters.values():
    meter.note(torch.rand(3, device="cuda"))
===
# file: ops.py
class Meter:
    def note(self, x):
        x                           # -> cuda float 1
# file: main.py
import torch
from ops import Meter
hooks = [Meter().note]
for hook in hooks:
    hook(torch.rand(3, device="cuda"))
===
# file: ops.py
class Meter:
    def note(self, x):
        x                           # -> cuda float 1
# file: main.py
import torch
from ops import Meter
class Trainer:
    def __init__(self):
        self.meter = Meter()
    def fit(self):
        self.meter.note(torch.rand(3, device="cuda"))
===
# file: ops.py
def f(x):
    x                               # -> cuda float 1
# file: main.py
import torch
from ops import f
REGISTRY = {"f": f}
REGISTRY["f"](torch.rand(3, device="cuda"))
===
# file: ops.py
def f(x):
    x                               # -> cuda float 1
# file: main.py
import torch
from ops import f
def apply(function, x):
    return function(x)
apply(f, torch.rand(3, device="cuda"))  # one call deep
===
# file: ops.py
def f(x):
    x                               # -> cuda float 1  # fails: the calls that map() makes have no arguments
# file: main.py
import torch
from ops import f
for y in map(f, [torch.rand(3, device="cuda")]):
    pass
===
# file: ops.py
def f(x):
    x                               # -> cuda float 1
# file: main.py
import torch
from ops import f
g = lambda x: f(x)
g(torch.rand(3, device="cuda"))
===
# file: ops.py
def f(loader):
    loader                          # -> DataLoader(dataset=?)
    for x in loader:
        x
# file: main.py
from torch.utils.data import DataLoader
from ops import f
f(DataLoader(make()))
===
# file: ops.py
def f(data):
    batch = next(iter(data))
    batch[0]                        # -> cpu
    for x, y in data:
        y                           # -> cpu
# file: main.py
from torch.utils.data import DataLoader, TensorDataset
from ops import f
f(DataLoader(TensorDataset(a, b)))
===
# file: ops.py
def f(net):
    net                             # -> Linear(in_features=3, out_features=4)
# file: main.py
from torch import nn
from ops import f
f(nn.Linear(3, 4))
===
# file: ops.py
def f(net):
    net                             # -> Net()
# file: main.py
from torch import nn
from ops import f
class Net(nn.Module):
    def forward(self, x):
        return x
f(Net())
===
# file: ops.py
def f(net, x):
    y = net(x)                      # -> cuda float
# file: main.py
import torch
from torch import nn
from ops import f
f(nn.Linear(3, 4).cuda(), torch.rand(3, 3, device="cuda"))
===
# file: ops.py
def f(net):
    net.weight                      # -> model float parameter
# file: main.py
from torch import nn
from ops import f
f(nn.Linear(3, 4))
===
# file: ops.py
def f(opt):
    opt                             # -> SGD(params=iterator[model float], lr=0.1)
    opt.step()                      # calls torch.optim.Optimizer.step
# file: main.py
import torch
from ops import f
f(torch.optim.SGD(net.parameters(), lr=0.1))
===
# file: ops.py
import torch
def f(where):
    torch.zeros(3, device=where)    # -> cuda float 1
# file: main.py
import torch
from ops import f
f(torch.device("cuda"))
===
# file: ops.py
import torch
def f(where):
    torch.zeros(3, device=where)    # -> cuda float 1
# file: main.py
from ops import f
f("cuda")
===
# file: ops.py
def f(batch):
    x, y = batch                    # -> cuda float 1, cpu float 1
# file: main.py
import torch
from ops import f
f((torch.rand(3, device="cuda"), torch.rand(3)))
===
# file: ops.py
def f(batch):
    batch["x"]                      # -> cuda float 1
    batch["y"]                      # -> cpu float 1
# file: main.py
import torch
from ops import f
f({"x": torch.rand(3, device="cuda"), "y": torch.rand(3)})
===
# file: ops.py
def f(items):
    for item in items:
        item                        # -> cuda float 1
# file: main.py
import torch
from ops import f
f([torch.rand(3, device="cuda") for _ in range(3)])
===
# file: ops.py
def f(items):
    for item in items:
        item                        # -> cuda float 1
# file: main.py
import torch
from ops import f
def make():
    for _ in range(3):
        yield torch.rand(3, device="cuda")
f(make())
===
# file: ops.py
def f(items):
    for item in items:
        item                        # -> cuda float 1
# file: main.py
import torch
from ops import f
f(torch.rand(3, device="cuda") for _ in range(3))
===
# file: ops.py
def f(x, y):
    x                               # -> cuda float 1
    y                               # -> cpu float 1
# file: main.py
import dataclasses, torch
from ops import f
@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    y: torch.Tensor
batch = Batch(torch.rand(3, device="cuda"), torch.rand(3))
f(batch.x, batch.y)
===
# file: ops.py
def f(batch):
    batch.x                         # -> cuda float 1
# file: main.py
import dataclasses, torch
from ops import f
@dataclasses.dataclass
class Batch:
    x: torch.Tensor
batch = Batch(torch.rand(3, device="cuda"))
f(batch)
===
# file: ops.py
def f(batch):
    batch.x                         # -> cuda float 1
    batch[1]                        # -> cpu float 1
# file: main.py
import torch
from typing import NamedTuple
from ops import f
class Batch(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor
f(Batch(torch.rand(3, device="cuda"), torch.rand(3)))
===
# file: ops.py
def f(config):
    config.width                    # -> int=3
    config.rate                     # -> float=0.1
# file: main.py
import dataclasses
from ops import f
@dataclasses.dataclass
class Config:
    width: int = 3
    rate: float = 0.1
f(Config())
===
# file: ops.py
def f(args, x):
    x.to(args.device)               # -> caller float 1
# file: main.py
import argparse, torch
from ops import f
parser = argparse.ArgumentParser()
args = parser.parse_args()
f(args, torch.rand(3))
===
# file: ops.py
def f(flag, name, width, rate):
    flag                            # -> bool
    name                            # -> str
    width                           # -> int
    rate                            # -> float
# file: main.py
from ops import f
f(True, "a", 3, 0.5)
===
# file: ops.py
def f(x):
    x                               # -> array float 1
# file: main.py
import numpy as np
from ops import f
f(np.zeros(3))
===
# file: ops.py
async def f(x):
    x                               # -> cuda float 1
# file: main.py
import torch
from ops import f
async def main():
    await f(torch.rand(3, device="cuda"))
===
# file: ops.py
def f(x):
    x                               # -> cuda float 1
    yield x
# file: main.py
import torch
from ops import f
for y in f(torch.rand(3, device="cuda")):
    pass
===
# file: ops.py
import contextlib
@contextlib.contextmanager
def f(x):
    x                               # -> cuda float 1
    yield x
# file: main.py
import torch
from ops import f
with f(torch.rand(3, device="cuda")) as y:
    pass
===
# file: ops.py
import torch
@torch.no_grad()
def f(x):
    x                               # -> cuda float 1
# file: main.py
import torch
from ops import f
f(torch.rand(3, device="cuda"))
===
# file: ops.py
class A:
    @staticmethod
    def f(x):
        x                           # -> cuda float 1
    @classmethod
    def g(cls, x):
        x                           # -> cuda float 1
    def __call__(self, x):
        x                           # -> cuda float 1
# file: main.py
import torch
from ops import A
x = torch.rand(3, device="cuda")
A.f(x)
A.g(x)
A()(x)
===
# file: pkg/__init__.py
from .ops import f
# file: pkg/ops.py
def f(x):
    x                               # -> cuda float 1
# file: main.py
import torch
from pkg import f
f(torch.rand(3, device="cuda"))
===
# file: ops.py
def f(x):
    x                               # -> cuda float 1
# file: main.py
import torch
def main():
    from ops import f
    f(torch.rand(3, device="cuda"))
===
# file: ops.py
def f(x):
    x                               # -> tensor float 1
# file: main.py
import torch
from ops import f
f(torch.rand(3, device="cuda"))
# file: other.py
import torch
from ops import f
f(torch.rand(3))
===
# file: ops.py
class Base:
    def run(self, x):
        return self.finish(x)
    def finish(self, x):
        return x
# file: own.py
from ops import Base
class Own(Base):
    def finish(self, x):
        x                           # -> cuda float 1
# file: main.py
import torch
from own import Own
Own().finish(torch.rand(3, device="cuda"))
===
# file: ops.py
class Base:
    def show(self, x):
        x                           # -> cuda float 1
# file: own.py
import torch
from ops import Base
class Own(Base):
    def finish(self):
        self.show(torch.rand(3, device="cuda"))
===
# file: ops.py
class Base:
    def show(self, x):
        x                           # -> cuda float 1
# file: own.py
import torch
from ops import Base
class Own(Base):
    def show(self, x):
        super().show(torch.rand(3, device="cuda"))
===
# file: ops.py
class Mixin:
    def show(self, x):
        x                           # -> cuda float 1
# file: own.py
import torch
from ops import Mixin
class Other:
    pass
class Own(Other, Mixin):
    def finish(self):
        self.show(torch.rand(3, device="cuda"))
===
# file: ops.py
import torch
def clip(params, limit):
    for p in params:
        p                           # -> model float
# file: main.py
from torch import nn
from ops import clip
net = nn.Linear(3, 3)
clip(net.parameters(), 1.0)
===
# file: ops.py
import torch
def clip(params):
    total = torch.norm(torch.stack([p.grad.norm() for p in params]))
    total                           # -> model float 0
# file: main.py
from torch import nn
from ops import clip
net = nn.Linear(3, 3)
clip(net.parameters())
===
# file: meter.py
class Meter:
    def update(self, **kwargs):
        for key, value in kwargs.items():
            value                   # -> model float 0
    def add(self, name, value):
        value                       # -> model float 0
# file: train.py
from meter import Meter
meter = Meter()
@step meter.update(loss=loss, other=loss); meter.add("x", loss)
===
# file: net.py
import torch
from torch import nn
class Net(nn.Module):
    def score(self, x, scale):
        x                           # -> model float 0
        scale                       # -> float
# file: train.py
from net import Net
@step net = Net(); net.score(loss, 2.0)
===
# file: pkg/ops.py
def f(x):
    x                               # -> cuda float 1
# file: scripts/run.py
import torch
from pkg.ops import f
f(torch.rand(3, device="cuda"))
"""


@programs(PASSED)
def test_passed(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


THROUGH_A_FACTORY = """
# file: nets.py
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        x                           # -> cpu float 2
        return x.cuda()
    def encode(self, y):
        y                           # -> cuda float 1
class Other(nn.Module):
    def forward(self, x):
        x                           # -> ?
# file: factory.py
from nets import Net, Other
def load(kind):
    if kind == "net":
        return Net()
    return Other()
# file: main.py
import torch
from factory import load
net = load("net")
net(torch.rand(3, 3))
net.encode(torch.rand(3, device="cuda"))
===
# file: nets.py
class Net:
    def encode(self, y):
        y                           # -> ?
# file: factory.py
from nets import Net
def load():
    return Net()
# file: main.py
import torch
from factory import load
make(load).encode(torch.rand(3, device="cuda"))
"""


@programs(THROUGH_A_FACTORY)
def test_through_a_factory(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


IN_PROCESSES = """
# file: work.py
def spawned(rank, net, x):
    rank                            # -> int
    net                             # -> Linear(in_features=3, out_features=3)
    x                               # -> cpu float 2
def run(x, y=None):
    x                               # -> cpu float 2
    y                               # -> cuda float 1
def in_thread(x):
    x                               # -> cpu float 2
def unknown(x):
    x                               # -> ?
def passed(x):
    x                               # -> ?
# file: main.py
import threading
import torch
import torch.multiprocessing as mp
from torch import nn
from work import in_thread, passed, run, spawned, unknown
net, x = nn.Linear(3, 3), torch.rand(3, 3)
mp.spawn(spawned, args=(net, x), nprocs=2, join=True)
process = mp.Process(target=run, args=(x,), kwargs={"y": torch.rand(3, device="cuda")})
process.start()
threading.Thread(target=in_thread, args=(x,)).start()
mp.spawn(unknown, args=read())
other.Process(passed, x)
"""


@programs(IN_PROCESSES)
def test_in_processes(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


NOT_PASSED = """
# file: ops.py
def f(x):
    x                               # -> ?
# file: main.py
import torch
from other import f
f(torch.rand(3, device="cuda"))
===
# file: ops.py
def f(x):
    x                               # -> ?
# file: main.py
import torch
import ops
def f(x):
    return x
f(torch.rand(3, device="cuda"))
===
# file: ops.py
def f(x):
    x                               # -> ?
# file: test_main.py
import pytest, torch
from ops import f
f(torch.rand(3, device="cuda"))
===
# file: ops.py
def f(x):
    x                               # -> ?
# file: tests/run.py
import torch
from ops import f
f(torch.rand(3, device="cuda"))
===
# file: ops.py
class A:
    def f(self, x):
        x                           # -> ?
class B:
    def f(self, x):
        x                           # -> cuda float 1
# file: main.py
import torch
from ops import A, B
B().f(torch.rand(3, device="cuda"))
===
# file: ops.py
class A:
    def f(self, x):
        x                           # -> ?
# file: main.py
import torch
from ops import A
class B(A):
    def f(self, x):
        pass
B().f(torch.rand(3, device="cuda"))
===
# file: ops.py
def f(x: int):
    x                               # -> int
# file: main.py
import torch
from ops import f
f(torch.rand(3, device="cuda"))
===
# file: ops.py
def f(*args):
    args                            # -> tuple[?]
# file: main.py
from ops import f
f(1, 2)
===
# file: ops.py
def f(x, y):
    x                               # -> ?
    y                               # -> ?
# file: main.py
import torch
from ops import f
f(*unknown())
===
# file: ops.py
def f(x, y=None):
    x                               # -> ?
# file: main.py
import torch
from ops import f
f(y=torch.rand(3, device="cuda"), **unknown())
===
# file: ops.py
def f(x):
    def g(x):
        x                           # -> ?
    x                               # -> cuda float 1
# file: main.py
import torch
from ops import f
f(torch.rand(3, device="cuda"))
===
# file: ops.py
def f(x):
    x                               # -> cuda float 1
    x = make()
    x                               # -> ?
# file: main.py
import torch
from ops import f
f(torch.rand(3, device="cuda"))
===
# file: a/ops.py
def f(x):
    x                               # -> ?
# file: b/ops.py
def f(x):
    x                               # -> cuda float 1
# file: b/main.py
import torch
from ops import f
f(torch.rand(3, device="cuda"))
===
# file: ops.py
def f(x, size=3):
    size                            # -> int=3
# file: main.py
from ops import f
f(1, size=4)
===
# file: ops.py
def f(x):
    if isinstance(x, str):
        x                           # -> str
    x                               # -> cuda float 1 | str
# file: main.py
import torch
from ops import f
f(torch.rand(3, device="cuda"))
f("a")
===
# file: ops.py
def f(x):
    x                               # -> ?
# file: main.py
import torch
from ops import f
f.x = torch.rand(3, device="cuda")
register(f, torch.rand(3, device="cuda"))
===
# file: ops.py
def f(x):
    x                               # -> ?
# file: main.py
import torch
ops = make()
ops.f(torch.rand(3, device="cuda"))
"""


@programs(NOT_PASSED)
def test_not_passed(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


ON_THE_CPU = """
# file: ops.py
import torch
def f(x):
    torch.relu(x)                   # -> cpu
# file: main.py
from ops import f
def run(model, loader):
    for x in loader:
        f(model(x).cpu())
===
# file: ops.py
import torch
def f(x):
    torch.relu(x)                   # -> caller
# file: main.py
from ops import f
def run(model, loader):
    for x in loader:
        f(model(x).cpu())
        f(model(x))
===
# file: ops.py
import torch
def f(x: torch.Tensor):
    x                               # -> cpu
# file: main.py
import torch
from ops import f
def run(path, name):
    held = torch.load(path, map_location="cpu")
    f(held["samples"][name].squeeze(0))
===
# file: ops.py
import torch
def f(x: torch.Tensor):
    x                               # -> caller
# file: main.py
import torch
from ops import f
def run(path, name, device):
    held = torch.load(path, map_location="cpu")
    f(held["samples"][name].to(device))
===
# file: ops.py
import torch
def f(x: torch.Tensor):
    x                               # -> caller
# file: main.py
import torch
from ops import f
def run(path, device):
    f(torch.load(path, map_location=device))
===
# file: ops.py
import torch
def f(x: torch.Tensor):
    x                               # -> caller
# file: main.py
import torch
from ops import f
def run(path, others):
    f(torch.load(path, map_location="cpu"))
    others.append(f)
===
# file: ops.py
import torch
def f(x: torch.Tensor):
    x                               # -> caller
# file: main.py
import torch
from ops import f
def run(path, x):
    f(torch.load(path, map_location="cpu"))
    f(x)
===
# file: ops.py
import torch
def f(x: torch.Tensor):
    x                               # -> caller
def own(y):
    f(y)
# file: main.py
import torch
from ops import f
def run(path):
    f(torch.load(path, map_location="cpu"))
===
# file: ops.py
import torch
def f(n: torch.Tensor):
    n                               # -> int
# file: main.py
import torch
from ops import f
def run(x: torch.Tensor):
    f(x.shape[0])
===
# file: ops.py
import torch
def f(n: torch.Tensor):
    n                               # -> array
# file: main.py
from ops import f
def run(x):
    f(x.cpu().numpy())
===
# file: ops.py
import torch
def f(n: torch.Tensor):
    n                               # -> caller
# file: main.py
import torch
from ops import f
def run(x: torch.Tensor):
    f(x.shape[0])
    f(torch.rand(3))
===
# file: ops.py
import torch
def f(n: torch.Tensor):
    n                               # -> caller
def own(y):
    f(y)
# file: main.py
import torch
from ops import f
def run(x: torch.Tensor):
    f(x.shape[0])
"""


@programs(ON_THE_CPU)
def test_on_the_cpu(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


ON_ANOTHER_DEVICE = """
# file: ops.py
import torch
def f(x: torch.Tensor, device: str = "cpu"):
    x.to(device)                    # -> cuda
def untyped(x, device="cpu"):
    torch.zeros(3, device=device)   # -> cuda float 1
def named(x: torch.Tensor, place: str = "cpu"):
    x.to(place)                     # -> model
def left(x: torch.Tensor, device: str = "cpu"):
    x.to(device)                    # -> tensor
def kept(x: torch.Tensor, device: str = "cpu"):
    x.to(device)                    # -> tensor
# file: main.py
import torch
from ops import f, kept, left, named, untyped
def run(x: torch.Tensor, model: torch.nn.Module):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    f(x, device)
    untyped(x, device=torch.device("cuda"))
    named(x, place=next(model.parameters()).device)
    left(x)
    kept(x, device="cpu")
===
# file: ops.py
import torch
def f(x: torch.Tensor, device: str = "cpu"):
    x.to(device)                    # -> cuda
def run(x: torch.Tensor):
    f(x)
    f(x, "cuda:0" if torch.cuda.is_available() else "cpu")
===
# file: ops.py
import torch
def f(x: torch.Tensor, device=torch.device("cpu")):
    x.to(device)                    # -> cuda
class Trainer:
    def __init__(self, model: torch.nn.Module, device: str = "cpu"):
        self.device = device
    def step(self, x: torch.Tensor):
        x.to(self.device)           # -> cuda
class Left:
    def __init__(self, model: torch.nn.Module, device: str = "cpu"):
        self.device = device
    def step(self, x: torch.Tensor):
        x.to(self.device)           # -> tensor
# file: main.py
import torch
from ops import Left, Trainer, f
def run(x: torch.Tensor, model: torch.nn.Module):
    f(x, torch.device("cuda"))
    Trainer(model, "cuda").step(x)
    Left(model).step(x)
"""


@programs(ON_ANOTHER_DEVICE)
def test_devices_that_calls_pass_in_place_of_the_cpu(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


DICTS = """
# file: ops.py
from typing import Any, Dict
def f(batch: dict[str, Any]):
    batch["x"]                      # -> cuda float 1
def g(batch: Dict[str, object]):
    batch["x"]                      # -> cuda float 1
def h(batch: dict):
    batch["x"]                      # -> cuda float 1
def of_tuple(batch: tuple):
    batch[0]                        # -> cuda float 1
def of_any(batch: tuple[Any, ...]):
    batch[0]                        # -> cuda float 1
def of_list(batch: list[Any]):
    batch[0]                        # -> cuda float 1
def told(batch: dict[str, int]):
    batch["x"]                      # -> int
def alone(batch: dict[str, Any]):
    batch["x"]                      # -> ?
# file: main.py
import torch
from ops import f, g, h, of_any, of_list, of_tuple, told
def run():
    batch = {"x": torch.rand(3, device="cuda")}
    of_tuple((batch["x"], batch["x"]))
    of_any((batch["x"], batch["x"]))
    of_list([batch["x"]])
    f(batch)
    g(batch)
    h(batch)
    told(batch)
"""


@programs(DICTS)
def test_dicts_of_anything(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)

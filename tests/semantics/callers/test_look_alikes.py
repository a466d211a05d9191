"""Calls in other files that must not make a line hot, or cold."""

from __future__ import annotations

from pathlib import Path

from tests.semantics.callers.programs import programs
from tests.semantics.notation import Case, check

NOT_HOT = """
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
import other as ops
from ops import shift
@step ops.read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
def read(x): pass
@step read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
@step read = print; read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
class Meter:
    def read(self, x): pass
meter = Meter()
@step meter.read(loss)
===
# file: ops.py
class Meter:
    def read(self, x):
        return x.item()             # warm
class Other:
    def read(self, x):
        return x
# file: train.py
from ops import Meter, Other
other = Other()
@step other.read(loss)
===
# file: ops.py
class Base:
    def read(self, x):
        return x.item()             # warm
# file: train.py
from ops import Base
class Own(Base):
    def read(self, x):
        return x
own = Own()
@step own.read(loss)
===
# file: ops.py
class Base:
    def read(self, x):
        return x.item()             # hot
# file: train.py
from ops import Base
class Own(Base):
    def read(self, x):
        return super().read(x)
own = Own()
@step own.read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from other import read
from ops import shift
@step read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
def train(model, loader, optimizer, read):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
TABLE = {"read": read}
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
@step f = read
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
@step print("read(loss)"); read
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: tests/test_ops.py
from ops import read
@step read(loss)
def test_read():
    train(1, 2, 3)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: test_ops.py
import pytest
from ops import read
@step read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: conftest.py
from ops import read
@step read(loss)
===
# file: a/ops.py
def read(x):
    return x.item()                 # warm
# file: b/ops.py
def read(x):
    return x
# file: b/train.py
from ops import read
@step read(loss)
===
# file: pkg/__init__.py
# file: pkg/a/__init__.py
# file: pkg/b/__init__.py
# file: pkg/a/ops.py
def read(x):
    return x.item()                 # warm
# file: pkg/b/ops.py
def read(x):
    return x
# file: pkg/b/train.py
from .ops import read
@step read(loss)
===
# file: pkg/__init__.py
from .ops import read
# file: pkg/ops.py
def read(x):
    return x.item()                 # warm
# file: pkg/fast.py
def read(x):
    return x
# file: train.py
from pkg.fast import read
@step read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
def use(x):
    return read(x)
@step pass
===
# file: ops.py
def outer(x):
    def read(y):
        return y.item()             # warm
    return read
def read(x):
    return x
# file: train.py
from ops import read
@step read(loss)
===
# file: ops.py
class Meter:
    def value(self):
        return self.x.item()        # warm
# file: train.py
from ops import Meter
meter = Meter()
@step meter.value = loss
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
@step optimizer.read(loss)
===
# file: ops.py
class Meter:
    def note(self, x):
        return x.item()             # warm
class Other:
    def note(self, x):
        return x
# file: train.py
from ops import Meter
@step loss.note(loss); Meter
===
# file: ops.py
class A:
    def read(self, x):
        return x.item()             # warm
class B(A):
    pass
# file: train.py
from ops import A, B
class C(B):
    def read(self, x):
        return x
c = C()
@step c.read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
import numpy as ops
from ops import shift
@step ops.read(loss)
"""


@programs(NOT_HOT)
def test_not_hot(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


RARELY = """
# file: ops.py
import torch
class Net(torch.nn.Module):
    def __init__(self, x):
        super().__init__()
        self.x = x.item()           # cold
# file: train.py
from ops import Net
@step Net(loss)
===
# file: ops.py
class Cache:
    def __init__(self, x):
        self.x = x.item()           # cold
# file: train.py
from ops import Cache
@step cache = None if cache is None else cache
cache = Cache(1)
===
# file: ops.py
class Cache:
    def __init__(self, x):
        self.x = x.item()           # cold
# file: train.py
from ops import Cache
class Trainer:
    cache = None
    def fit(self, model, loader, optimizer):
        for x in loader:
            if self.cache is None:
                self.cache = Cache(x)
            model(x).backward()
            optimizer.step()
===
# file: ops.py
def read(x):
    return x.item()                 # cold
# file: train.py
from ops import read
@step if step % 100 == 0: read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # cold
# file: train.py
from ops import read
def save_checkpoint(model):
    read(model.weight)
===
# file: ops.py
def read(x):
    return x.item()                 # cold
# file: train.py
import torch
from ops import read
class Net(torch.nn.Module):
    def __init__(self, x):
        super().__init__()
        self.x = read(x)
===
# file: ops.py
def read(x):
    return x.item()                 # cold
# file: train.py
from ops import read
if __name__ == "__main__":
    read(1)
===
# file: ops.py
def read(x):
    return x.item()                 # cold
# file: train.py
from ops import read
def main():
    read(1)
if __name__ == "__main__":
    main()
===
# file: ops.py
def read(x):
    return x.item()                 # cold
# file: train.py
from ops import read
def helper(x):
    return read(x)
# file: main.py
from train import helper
helper(1)
===
# file: ops.py
def read(x):
    return x.item()                 # cold
# file: train.py
from ops import read
@step pass
read(1)
===
# file: ops.py
def read(x):
    return x.item()                 # cold
# file: train.py
from ops import read
try:
    run()
except ValueError as error:
    read(error)
===
# file: ops.py
def read(x):
    return x.item()                 # cold
# file: train.py
from ops import read
@step raise ValueError(read(loss))
===
# file: ops.py
class Meter:
    def show(self):
        return self.total.item()    # cold
# file: train.py
from ops import Meter
meter = Meter()
@step pass
print(meter.show())
===
# file: ops.py
def one(x):
    return two(x)
def two(x):
    return x.item()                 # cold
# file: train.py
from ops import one
one(1)
===
# file: ops.py
def _one(x):
    return x.item()                 # cold
def one(x):
    return _one(x)
# file: train.py
from ops import one
one(1)
"""


@programs(RARELY)
def test_cold(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


NOT_COLD = """
# file: ops.py
class Net:
    def do_read(self, x):
        return x.item()             # warm
    def run(self, kind, x):
        return getattr(self, f"do_{kind}")(x)
# file: train.py
from ops import Net
Net().do_read(1)
===
# file: ops.py
class Net:
    def read(self, x):
        return x.item()             # warm
    def run(self, name, x):
        return getattr(self, name)(x)
# file: train.py
from ops import Net
Net().read(1)
===
# file: ops.py
class Net:
    def read(self, x):
        return x.item()             # cold
    def run(self, kind, x):
        return getattr(self, f"do_{kind}")(x)
# file: train.py
from ops import Net
Net().read(1)
===
# file: ops.py
from framework import Base
class Own(Base):
    def after(self, x):
        return x.item()             # warm
# file: train.py
from ops import Own
Own().after(1)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
import ops
ops.read(1)
f = getattr(ops, "read")
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
read(1)
# file: other.py
import ops
def use(x, name):
    return getattr(ops, name)(x)
===
# file: ops.py
REGISTRY = {}
def register(function):
    REGISTRY[function.__name__] = function
    return function
@register
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
read(1)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
TABLE = {"sum": read}
# file: train.py
from ops import read
read(1)
===
# file: ops.py
__all__ = ["read"]
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
read(1)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
read(1)
# file: other.py
import ops
HOOKS = [ops.read]
===
# file: ops.py
def read(x):
    return x.item()                 # warm
def use(name, x):
    return globals()[name](x)
# file: train.py
from ops import read
read(1)
===
# file: ops.py
class Base:
    def read(self, x):
        return x.item()             # warm
# file: train.py
from ops import Base
Base().read(1)
# file: other.py
from ops import Base
class Own(Base):
    def step(self, x):
        return self.read(x)
===
# file: ops.py
class Base:
    def read(self, x):
        return x.item()             # warm
# file: train.py
from ops import Base
Base().read(1)
# file: other.py
def use(base, x):
    return base.read(x)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
read(1)
# file: other.py
from ops import read
def use(x):
    return read(x)
===
# file: pkg/__init__.py
from .ops import read
# file: pkg/ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from pkg import read
read(1)
===
# file: pkg/__init__.py
from .ops import *
# file: pkg/ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from pkg.ops import read
read(1)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
read(1)
# file: config.yaml
function: ops.read
# file: other.py
def build(config):
    return load("ops.read")
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
read(1)
register_hook(read)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
r = read
r(1)
class Trainer:
    hook = read
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
import functools
from ops import read
read(1)
half = functools.partial(read, 1)
===
# file: ops.py
class Meter:
    def __len__(self):
        return self.x.item()        # warm
# file: train.py
from ops import Meter
Meter().__len__()
===
# file: ops.py
class Net:
    def read(self, x):
        return x.item()             # warm
    def use(self, x):
        return self.read(x)
# file: train.py
from ops import Net
Net().read(1)
===
# file: ops.py
def read(x):
    return x.item()                 # warm
# file: train.py
from ops import read
def use(x):
    return read(x)
read(1)
"""


@programs(NOT_COLD)
def test_not_cold(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)

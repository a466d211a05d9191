"""Calls in other files that make a line hot or cold."""

from __future__ import annotations

from pathlib import Path

from tests.semantics.callers.programs import programs
from tests.semantics.notation import Case, check

WAYS_TO_IMPORT = """
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
import ops
@step ops.read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from ops import read as r
@step r(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
import ops as o
@step o.read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from ops import *
@step read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
@step from ops import read; read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
try:
    from ops import read
except ImportError:
    read = None
@step read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
import typing
if not typing.TYPE_CHECKING:
    from ops import (
        read,
    )
@step read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot  # fails: importers are found by their import statements
# file: train.py
import importlib
ops = importlib.import_module("ops")
@step ops.read(loss)
===
# file: pkg/__init__.py
# file: pkg/ops.py
def read(x):
    return x.item()                 # hot
# file: pkg/train.py
from .ops import read
@step read(loss)
===
# file: pkg/__init__.py
# file: pkg/ops.py
def read(x):
    return x.item()                 # hot
# file: pkg/train.py
from . import ops
@step ops.read(loss)
===
# file: pkg/__init__.py
# file: pkg/a/__init__.py
# file: pkg/b/__init__.py
# file: pkg/a/ops.py
def read(x):
    return x.item()                 # hot
# file: pkg/b/train.py
from ..a.ops import read
@step read(loss)
===
# file: pkg/__init__.py
# file: pkg/ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
import pkg.ops
@step pkg.ops.read(loss)
===
# file: pkg/__init__.py
from .ops import read
# file: pkg/ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from pkg import read
@step read(loss)
===
# file: pkg/__init__.py
from .ops import *
# file: pkg/ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
import pkg
@step pkg.read(loss)
===
# file: pkg/__init__.py
from . import ops
# file: pkg/ops.py
def read(x):
    return x.item()                 # hot  # fails: importers are found by their import statements
# file: train.py
import pkg
@step pkg.ops.read(loss)
===
# file: pkg/ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from pkg.ops import read
@step read(loss)
===
# file: pkg/deep/ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from pkg.deep import ops
@step ops.read(loss)
===
# file: api.py
from ops import read
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from api import read
@step read(loss)
===
# file: api.py
from ops import read as measure
# file: ops.py
def read(x):
    return x.item()                 # hot  # fails: callers are found by the name of the function  # fails: callers are found by the name of the function
# file: train.py
from api import measure
@step measure(loss)
===
# file: api.py
import ops
measure = ops.read
# file: ops.py
def read(x):
    return x.item()                 # hot  # fails: callers are found by the name of the function
# file: train.py
from api import measure
@step measure(loss)
===
# file: src/pkg/__init__.py
# file: src/pkg/ops.py
def read(x):
    return x.item()                 # hot
# file: scripts/train.py
from pkg.ops import read
@step read(loss)
===
# file: tools/ops.py
def read(x):
    return x.item()                 # hot
# file: tools/train.py
from ops import read
@step read(loss)
===
# file: tools/ops.py
def read(x):
    return x.item()                 # hot
# file: setup.py
# file: tools/train.py
from tools.ops import read
@step read(loss)
"""


@programs(WAYS_TO_IMPORT)
def test_ways_to_import(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


WAYS_TO_CALL = """
# file: metrics.py
class Recall:
    def reset(self):
        self.sum = self.sum.item()      # cold
    def update(self, x):
        self.sum += x
    def compute(self):
        return self.sum.item()          # hot
# file: train.py
from metrics import Recall
recall = Recall()
@step recall.update(loss); print(recall.compute())
===
# file: metrics.py
class Recall:
    def reset(self):
        self.sum = self.sum.item()      # cold
    def update(self, x):
        self.sum += x
    def compute(self):
        return self.sum.item()          # cold
# file: train.py
from metrics import Recall
recall = Recall()
@step recall.update(loss)
print(recall.compute())
===
# file: ops.py
class Meter:
    def update(self, x):
        self.note(x)
    def note(self, x):
        self.total = x.item()       # hot
    def show(self):
        return self.total.item()    # cold
# file: train.py
from ops import Meter
@step meter = Meter(); meter.note(loss)
print(Meter().show())
===
# file: ops.py
class Clipper:
    def __init__(self, limit):
        self.limit = limit
    def __call__(self, params):
        return params.item()        # hot
# file: train.py
from ops import Clipper
clip = Clipper(1.0)
@step clip(loss)
===
# file: ops.py
class Clipper:
    @staticmethod
    def clip(x):
        return x.item()             # hot
    @classmethod
    def make(cls, x):
        return x.item()             # hot
    @property
    def size(self):
        return self.x.item()        # warm
# file: train.py
from ops import Clipper
@step Clipper.clip(loss); Clipper.make(loss)
===
# file: ops.py
class Log:
    def __init__(self):
        self.meter = Meter()
class Meter:
    def note(self, x):
        return x.item()             # hot
# file: train.py
from ops import Log
log = Log()
@step log.meter.note(loss)
===
# file: ops.py
class Meter:
    def note(self, x):
        return x.item()             # hot
# file: train.py
from ops import Meter
meters = {"a": Meter(), "b": Meter()}
@step meters["a"].note(loss)
===
# file: ops.py
class Meter:
    def note(self, x):
        return x.item()             # hot
# file: train.py
from ops import Meter
meters = [Meter() for _ in range(3)]
@step [m.note(loss) for m in meters]
===
# file: ops.py
class Meter:
    def note(self, x):
        return x.item()             # hot
# file: train.py
from ops import Meter
meter = Meter()
note = meter.note
@step note(loss)
===
# file: ops.py
class Meter:
    def note(self, x):
        return x.item()             # hot
# file: train.py
from ops import Meter
meter = Meter()
calls = [meter.note, print]
@step [call(loss) for call in calls]
===
# file: ops.py
class Meter:
    def note(self, x):
        return x.item()             # hot
# file: train.py
from ops import Meter
class Trainer:
    def __init__(self):
        self.meter = Meter()
    def fit(self, model, loader, optimizer):
        for x in loader:
            loss = model(x)
            loss.backward()
            optimizer.step()
            self.meter.note(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
import functools
from ops import read
r = functools.partial(read)
@step r(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from ops import read
REGISTRY = {"read": read}
@step REGISTRY["read"](loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from ops import read
r = read
@step r(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from ops import read
@step list(map(read, [loss]))
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from ops import read
r = lambda x: read(x)
@step r(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from ops import read
@step {"loss": read(loss), **{}}
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from ops import read
@step print(f"{read(loss)}")
===
# file: ops.py
import contextlib
@contextlib.contextmanager
def timed(x):
    yield x.item()                  # hot
# file: train.py
from ops import timed
@step with timed(loss): pass
===
# file: ops.py
def batches(loader):
    for x in loader:
        yield x.item()              # hot
# file: train.py
from ops import batches
def train(model, loader, optimizer):
    for x in batches(loader):
        model(x).backward()
        optimizer.step()
===
# file: ops.py
import functools
def logged(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        result = function(*args, **kwargs)
        result.item()               # hot  # fails: functions in functions are not followed
        return result
    return inner
# file: train.py
from ops import logged
@logged
def scale(x):
    return x * 2
@step scale(loss)
===
# file: ops.py
class State:
    def __init__(self, x):
        self.x = x.item()           # hot
# file: train.py
from ops import State
@step State(loss)
===
# file: ops.py
import dataclasses
@dataclasses.dataclass
class State:
    x: object
    def __post_init__(self):
        self.x = self.x.item()      # hot
# file: train.py
from ops import State
@step State(loss)
===
# file: ops.py
class Timer:
    def __enter__(self):
        return self
    def __exit__(self, *args):
        self.total.item()           # hot
# file: train.py
from ops import Timer
timer = Timer()
@step with timer: pass
===
# file: ops.py
class Pool:
    def __getitem__(self, index):
        return self.x[index].item() # hot
    def __len__(self):
        return self.x.item()        # hot
# file: train.py
from ops import Pool
pool = Pool()
@step pool[0]; len(pool)
"""


@programs(WAYS_TO_CALL)
def test_ways_to_call(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


NAMES_OF_SET_UP = """
# file: ops.py
def init_frame(vec):
    return vec.min().item()         # hot
# file: train.py
from ops import init_frame
@step init_frame(loss)
===
# file: ops.py
def init_frame(vec):
    return vec.min().item()         # hot
# file: net.py
import torch
from ops import init_frame
class Net(torch.nn.Module):
    def _init_frame(self, vec):
        return init_frame(vec)      # hot
    def forward(self, vec):
        return self._init_frame(vec)
===
# file: ops.py
def init_frame(vec):
    return vec.min().item()         # cold
# file: net.py
import torch
from ops import init_frame
class Net(torch.nn.Module):
    def forward(self, vec):
        if self.frame is None:
            self.frame = init_frame(vec)
        return self.frame
===
# file: ops.py
def init_weights(layer):
    layer.weight.min().item()       # cold
# file: net.py
import torch
from ops import init_weights
class Net(torch.nn.Module):
    def __init__(self):
        self.layer = torch.nn.Linear(2, 2)
        init_weights(self.layer)
    def forward(self, x):
        return self.layer(x)
"""


@programs(NAMES_OF_SET_UP)
def test_a_call_in_each_step_beats_a_name_of_set_up(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


TESTS_OF_OTHER_FILES = """
# file: settings.py
class Settings:
    def is_due(self, step):
        if self.off:
            return False
        return step % self.every == 0
    def is_odd(self, step):
        return step % 2 == 1
    def is_allowed(self, step):
        return self.allows
# file: train.py
from settings import Settings
def train(model, loader, optimizer, settings: Settings):
    for step, x in enumerate(loader):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        if settings.is_due(step):
            loss.item()                 # cold
        if settings.is_odd(step):
            loss.item()                 # hot
        if settings.is_allowed(step):
            loss.item()                 # hot
===
# file: settings.py
def is_due(count):
    rest = count % 100
    return rest == 0
# file: train.py
from settings import is_due
rest = 3
def train(model, loader, optimizer):
    for step, x in enumerate(loader):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        if is_due(step):
            loss.item()                 # cold  # fails: names in a function of another file are not followed
"""


@programs(TESTS_OF_OTHER_FILES)
def test_a_function_of_another_file_tells_how_often_a_branch_runs(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)

"""NumPy's arrays: how many dimensions they have and what they hold, on their way to tensors and back."""

from __future__ import annotations

import ast

import numpy
import pytest

from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.values import Array, Kind
from perflint.source.text import Source
from tests.semantics.notation import Case, check, table

EXPRESSIONS = """
np.arange(5)
np.arange(0, 1, 0.1)
np.arange(0, 10, 2, np.float32)
np.linspace(0, 9, 5)
np.linspace(np.zeros(3), np.ones(3), 5)
np.logspace(0, 2, 5)
np.zeros(3)
np.zeros((3, 4), dtype=np.int64)
np.ones((3, 4), bool)
np.empty(shape=(2, 3, 4))
np.full((2, 3), 7)
np.full((2, 3), 7, dtype="float32")
np.full_like(np.zeros((2, 3)), 1.5)
np.eye(3)
np.array([1, 2])
np.array([[1.0, 2.0], [3.0, 4.0]])
np.array([np.zeros(3), np.ones(3)])
np.array([True, False])
np.array([1, 2], np.float32)
np.asarray(np.zeros((2, 3)))
np.asarray(3)
np.stack([np.zeros(3), np.ones(3)])
np.concatenate([np.zeros((2, 3)), np.ones((2, 3))])
np.concatenate((np.arange(3), np.arange(4)))
np.expand_dims(np.arange(3), 0)
np.ravel(np.zeros((2, 3)))
np.cumsum(np.zeros((2, 3)))
np.cumsum(np.zeros((2, 3)), 1)
np.cumsum(np.zeros((2, 3)), axis=0)
np.repeat(np.arange(3), 2)
np.repeat(np.zeros((2, 3)), 2, axis=1)
np.argsort(np.zeros((2, 3)))
np.sqrt(np.arange(3))
np.exp(2.0)
np.maximum(np.zeros((2, 3)), np.arange(3))
np.isnan(np.zeros((2, 3)))
np.logical_and(np.zeros(3), np.ones(3))
np.float32(1)
np.sum(np.zeros((2, 3)), axis=1)
np.mean(np.arange(6), 0)
np.argmax(np.zeros((2, 3)), axis=0)
np.max(np.zeros((2, 3)), axis=(0, 1), keepdims=True)
np.random.permutation(5)
np.random.permutation(np.zeros((2, 3)))
np.random.rand(2, 3)
np.random.random((2, 3))
np.random.normal(0.0, 1.0, (2, 3))
np.random.randint(0, 9, size=4)
np.random.choice(5, 2)
np.random.uniform(size=(2, 3, 4))
np.arange(3) * 2
np.arange(3) / 2
np.arange(3) * 0.5
np.zeros((2, 3)) + np.arange(3)
np.zeros((2, 3)) @ np.zeros((3, 4))
np.zeros((2, 3)) @ np.zeros(3)
np.zeros(3) @ np.zeros(3)
np.arange(3) + [1.0, 2.0, 3.0]
-np.arange(3)
np.arange(3) > 1
np.arange(9).reshape(3, 3)
np.arange(9).reshape((3, 3))
np.zeros((3, 3)).reshape(-1)
np.zeros((3, 3)).ravel()
np.zeros((3, 3)).flatten()
np.zeros((3, 4)).T
np.arange(9)[::-1]
np.arange(9)[2]
np.zeros((3, 4))[0]
np.zeros((3, 4))[:, 0]
np.zeros((3, 4))[None]
np.zeros((3, 4))[..., None]
np.zeros((3, 4))[[0, 1]]
np.zeros((3, 4))[np.arange(2)]
np.zeros((3, 4))[np.zeros((3, 4)) > 0]
np.arange(9).astype(np.float32)
np.zeros(3).astype(int)
np.zeros(3).astype("int64")
np.zeros(3).copy().round().clip(0, 1)
np.zeros((3, 4)).sum()
np.zeros((3, 4)).mean(axis=0)
np.arange(3).mean()
np.zeros((3, 4)).argmax(1)
np.zeros((3, 4)).max(axis=1, keepdims=True)
np.zeros((3, 4)).argsort()
np.zeros((3, 4)).cumsum()
np.zeros((3, 4)).cumsum(1)
(np.zeros((3, 4)) > 0).any(axis=1)
(np.zeros((3, 4)) > 0).sum()
"""

_KINDS = {"b": Kind.BOOL, "i": Kind.INT, "u": Kind.INT, "f": Kind.FLOAT}


@pytest.mark.parametrize("code", EXPRESSIONS.strip().splitlines())
def test_as_numpy_does(code: str) -> None:
    model = Model(Source("snippet.py", f"import numpy as np\n{code}\n"), Project())
    node = next(node for node in model.everything() if isinstance(node, ast.Expr))
    found = eval(code, {"np": numpy})
    assert model.value(node.value) == Array(_KINDS[found.dtype.kind], found.ndim)


UNKNOWN_SHAPES = """
np.zeros(shape)             # -> array float
np.array(rows)              # -> array
np.array([row, row])        # -> array
np.array([1, 2], ndmin=2)   # -> array
np.linspace(0, 9, 5, retstep=True)  # -> array
np.arange(9) * factors      # -> array
np.arange(9) * 0.5 * factors    # -> array float
np.arange(9)[chosen]        # -> array int
np.zeros(3).reshape(shape)  # -> array float
np.zeros(3).dot(weights)    # -> array
np.random.permutation(data) # -> array
np.stack(rows)              # -> array
np.concatenate(rows)        # -> array
np.sqrt(data)               # -> array float
np.rand(*shape)             # -> array
np.zeros((2, 3)).sum(axis)  # -> array float
np.expand_dims(np.zeros(3), axes)   # -> array float

for x in np.array(rows):
    x                       # -> ?

def both(flag):
    a = np.arange(3) if flag else np.zeros((3, 4))
    a                       # -> array
    b = np.arange(3) if flag else np.ones((3, 4), int)
    b                       # -> array int
    c = np.arange(3) if flag else np.zeros(3)
    c                       # -> array 1

import pandas as pd
pd.read_csv("a").mean()     # -> array float
"""

TENSORS = """
torch.from_numpy(np.arange(9))      # -> cpu int 1
torch.from_numpy(np.arange(9)).to("cuda")   # -> cuda int 1
torch.from_numpy(data)              # -> cpu
torch.tensor(np.zeros((2, 3)))      # -> cpu float 2
torch.tensor(np.zeros(3), dtype=torch.int64)    # -> cpu int 1
torch.tensor([np.zeros(3), np.ones(3)]) # -> cpu float 2
torch.as_tensor(np.arange(3), device="cuda")    # -> cuda int 1
torch.asarray(np.arange(3))         # -> cpu int 1
cuda.cpu().numpy()                  # -> array float 2
cuda.cpu().numpy()[0]               # -> array float 1
cuda.cpu().numpy().mean()           # -> array float 0
ints.cpu().numpy().tolist()         # -> list[int]
np.zeros((2, 3)).shape              # -> (int, int)
host[np.arange(2)]                  # -> cpu float 2
host[np.zeros((2, 3)) > 0]          # -> cpu float 1
host[np.arange(2)[0]]               # -> cpu float 1

for t in torch.from_numpy(np.arange(9)).to("cuda"):
    t                               # -> cuda int 0
for i, row in enumerate(np.zeros((3, 4))):
    row                             # -> array float 1
for number in np.arange(9):
    number                          # -> array int 0
"""

SCHEDULER = """
class Scheduler:
    def __init__(self, count: int = 100):
        self.count = count
        self.table = torch.linspace(0, 1, count)
        self.times = torch.from_numpy(np.arange(0, count)[::-1].copy())
    def set_times(self, steps: int, device: torch.device):
        times = np.linspace(0, self.count - 1, steps).round()[::-1].copy().astype(np.int64)
        times               # -> array int 1
        self.times = torch.from_numpy(times).to(device)
    def step(self, out: Tensor, t, x: Tensor):
        t                   # -> caller int 0
        before = t - self.count // 10
        before              # -> caller int 0
        return x - self.table[t] * out
class Sampler:
    def __init__(self, scheduler: Scheduler):
        self.scheduler = scheduler
    def __call__(self, model: nn.Module, x: Tensor):
        self.scheduler.set_times(20, x.device)
        for t in self.scheduler.times:
            t               # -> caller int 0
            x = self.scheduler.step(model(x, t), t, x)
        return x
"""

NUMBERS = """
class Diffusion:
    def __init__(self, steps: int, device: torch.device):
        self.table = torch.linspace(0, 1, steps, device=device)
    def step(self, x: Tensor, t: Tensor):
        t                   # -> caller int 0
        return x * self.table[t]
    def sample(self, x: Tensor):
        for t in torch.arange(10, device=x.device).flip(0):
            x = self.step(x, t)
            x = self.both(x, t)
            x = self.perhaps(x, t)
        return self.both(x, torch.arange(3, device=x.device))
    def both(self, x: Tensor, t: Tensor):
        t                   # -> caller
        return x * self.table[t]
    def perhaps(self, x: Tensor, t: Tensor):
        t                   # -> caller
        return x * self.table[t]
    def other(self, x: Tensor, t):
        return self.perhaps(x, t)
    def loss(self, x: Tensor):
        times = torch.randint(0, 10, (x.shape[0],), device=x.device)
        return self.noised(x, times)
    def noised(self, x: Tensor, t: Tensor):
        t                   # -> caller
        return x * self.table[t]
"""


@table(NUMBERS)
def test_numbers(case: Case) -> None:
    check(case)


@table(UNKNOWN_SHAPES)
def test_unknown_shapes(case: Case) -> None:
    check(case)


@table(TENSORS)
def test_tensors(case: Case) -> None:
    check(case)


@table(SCHEDULER)
def test_scheduler(case: Case) -> None:
    check(case)


DERIVED = """
class Costs(np.ndarray):
    def __new__(cls, count):
        return super().__new__(cls, (count, count), float)
    def highest(self):
        return super().max(0)
    def as_list(self):
        return super().tolist()
Costs(3).highest()      # -> array
"""


@table(DERIVED)
def test_classes_that_derive_from_arrays(case: Case) -> None:
    check(case)

"""Copies within a device, growing tensors, rows and data of NumPy: what a run says of the findings."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from perflint.findings import Ruling
from tests.tracer import warm
from tests.tracer.witnesses.running import observed, traced, verdicts

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
YES, NO, FREE, OPEN = Ruling.CONFIRMED, Ruling.REFUTED, Ruling.NO_COST, Ruling.UNDECIDED
COPIES = """
import copy
import sys

class Keeper:
    kept = torch.ones(2, 4).cuda()

    def __radd__(self, other):
        return self.kept

class Copies(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor, change, keeper):
        needless = x.clone()
        total = needless + y
        before = y.clone()
        y.add_(1)
        total = total + before
        fresh = (x + y).clone()
        held = (x + keeper).clone()
        row = x[:1].repeat(2, 1)
        total = total + row
        changed = change(x[:1].repeat(2, 1))
        slice = x[:, :2].contiguous() + 1
        whole = x[:, :width].contiguous() + 1
        deep = copy.deepcopy(x.detach()) + 1
        written = torch.tensor(x.detach())
        change(written)
        array = torch.tensor(y.detach())
        change(array.cpu().numpy())
        return self.net(total + fresh + held + changed)

width = 4
model = Copies().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
before = torch.zeros(2, device="cuda")
same, counts = [], []
for step in range(3):
    x = torch.ones(2, 4, device="cuda", requires_grad=True)
    y = torch.ones(2, 4, device="cuda", requires_grad=True) * 2
    out = model(x, y, lambda tensor: tensor.__iadd__(1), eval('Keeper()'))
    kept = before.clone()
    version = kept._version
    out.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    x = y = None
    counts.append(sys.getrefcount(out))
    same.append((version, kept._version, before._version))
with torch.inference_mode():
    uncounted = before.clone() + 1
array = before.cpu().clone()
array.numpy()[0] = 1
del array
assert same == [(0, 0, 0)] * 3 and len(set(counts)) == 1, (same, counts)
"""
GROWTH = """
def gathered(parts):
    out = torch.zeros(64, 8, device="cuda")
    for part in parts:
        out = torch.cat([out, part])
    return out

def one(parts):
    only = torch.zeros(64, 8, device="cuda")
    for part in parts:
        only = torch.cat([only, part])
    return only

def few(parts):
    small = torch.zeros(1, 8, device="cuda")
    for part in parts:
        small = torch.cat([small, part])
    return small

def rows(x: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] / x[i].norm()
    return out

def rows_on_cpu(x: torch.Tensor):
    host = torch.empty_like(x)
    for i in range(x.size(0)):
        host[i] = x[i] / x[i].norm()
    return host

def two(x: torch.Tensor):
    pair = torch.empty_like(x)
    for i in range(len(x)):
        pair[i] = x[i] * 2
    return pair

def numbers(values, count):
    buffer = torch.zeros(count)
    for i in range(count):
        buffer[i] = values[i]
    return buffer

def losses(model, optimizer, loader, training):
    running, kept, gone, off = 0.0, [], [], torch.zeros(())
    for step, x in enumerate(loader):
        loss = model(x).sum()
        running += loss
        kept.append(loss)
        with torch.set_grad_enabled(step < 0):
            off += loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        gathered([torch.ones(2048, 8, device="cuda")] * 12)
        one([torch.ones(1, 8, device="cuda")])
        few([torch.ones(1, 8, device="cuda")] * 2)
        rows(torch.ones(16, 4, device="cuda"))
        rows_on_cpu(torch.ones(16, 4))
        two(torch.ones(2, 4, device="cuda"))
        numbers([1.0] * 32, 32)

def dropped(model, optimizer, loader):
    values = []
    for x in loader:
        loss = model(x).sum()
        values.append(loss)
        loss.backward()
        optimizer.step()
        values.clear()
        x = loss = None

model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses(model, optimizer, [torch.ones(2, 4, device="cuda")] * 5, True)
dropped(model, optimizer, [torch.ones(2, 4, device="cuda")] * 5)
"""
DATA = """
import gc
import numpy as np

def spectrum(x: torch.Tensor, device):
    found = np.abs(np.fft.rfft(x.cpu().numpy()))
    return torch.from_numpy(found).to(device)

def of_host(x: torch.Tensor, device):
    found = np.abs(np.fft.rfft(x.cpu().numpy()))
    moved = torch.from_numpy(found).to(device)
    return moved

def cast(x: torch.Tensor):
    there = x.type(torch.LongTensor)
    return there

def cast_host(x: torch.Tensor):
    here = x.type(torch.LongTensor)
    return here

def double(device):
    return torch.from_numpy(np.random.randn(2, 4)).to(device)

def stays(device):
    made = torch.from_numpy(np.random.randn(2, 4)).to(device)
    return made

def listed(shape):
    return torch.tensor([np.zeros(shape) for _ in range(64)])

def once(shape):
    return torch.tensor([np.ones(shape) for _ in range(64)])

model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
once(4)
for step in range(5):
    x = torch.ones(2, 4, device="cuda")
    model(x).sum().backward()
    optimizer.step()
    spectrum(x, "cuda")
    of_host(x.cpu(), "cuda")
    cast(x)
    cast_host(x.cpu())
    double("cuda")
    stays("cpu")
    listed(4)
    torch.save(model.state_dict(), "each.pt")
    gc.collect()
    if step * 2 != 4:
        continue
    torch.save(model.state_dict(), "once.pt")
"""


def test_copies(tmp_path: Path) -> None:
    trace = traced(tmp_path, COPIES)
    assert observed(trace, "needless = ")["copy.unwritten"] == 3
    assert observed(trace, "before = y") == {"copy.made": 3, "copy.source-written": 3, "copy.of-kept": 3}
    assert observed(trace, "fresh = ")["copy.of-temporary"] == 3
    assert observed(trace, "deep = ")["copy.unwritten"] == 3
    assert observed(trace, "kept = before") == {
        "copy.made": 3,
        "copy.unwritten": 2,
        "copy.kept": 1,
        "copy.of-kept": 3,
    }
    assert observed(trace, "uncounted = ") == {"copy.made": 1, "copy.unknown": 1}
    assert observed(trace, "array = before")["copy.unknown"] == 1
    assert verdicts(tmp_path, "TPF211") == {"fresh = (x + y).clone()": YES, "held = (x + keeper).clone()": NO}
    assert verdicts(tmp_path, "TPF212") == {
        "row = x[:1].repeat(2, 1)": YES,
        "changed = change(x[:1].repeat(2, 1))": NO,
    }
    unwritten = verdicts(tmp_path, "TPF213")
    assert unwritten["needless = x.clone()"] is YES
    assert unwritten["slice = x[:, :2].contiguous() + 1"] is YES
    assert unwritten["whole = x[:, :width].contiguous() + 1"] is NO
    assert unwritten["written = torch.tensor(x.detach())"] is NO


def test_growth_and_rows(tmp_path: Path) -> None:
    trace = traced(tmp_path, GROWTH)
    assert observed(trace, "out = torch.cat") == {"cat.apart": 5, "cat.grew": 55}
    assert observed(trace, "buffer[i] = ") == {"number.stored-on-cpu": 160}
    assert verdicts(tmp_path, "TPF207") == {
        "out = torch.cat([out, part])": YES,
        "only = torch.cat([only, part])": NO,
        "small = torch.cat([small, part])": FREE,
    }
    assert verdicts(tmp_path, "TPF208") == {
        "for i in range(x.shape[0]):": YES,
        "for i in range(x.size(0)):": NO,
        "for i in range(len(x)):": FREE,
        "for i in range(count):": YES,
    }
    assert verdicts(tmp_path, "TPF210") == {
        "running += loss": YES,
        "kept.append(loss)": YES,
        "off += loss": NO,
        "values.append(loss)": NO,
    }


def test_data(tmp_path: Path) -> None:
    traced(tmp_path, DATA, "--warmup", "1")
    assert verdicts(tmp_path, "TPF205") == {
        "return torch.from_numpy(found).to(device)": YES,
        "moved = torch.from_numpy(found).to(device)": NO,
    }
    assert verdicts(tmp_path, "TPF206") == {
        "there = x.type(torch.LongTensor)": YES,
        "here = x.type(torch.LongTensor)": NO,
    }
    assert verdicts(tmp_path, "TPF209") == {
        "return torch.from_numpy(np.random.randn(2, 4)).to(device)": YES,
        "made = torch.from_numpy(np.random.randn(2, 4)).to(device)": NO,
    }
    assert verdicts(tmp_path, "TPF214") == {
        "return torch.tensor([np.zeros(shape) for _ in range(64)])": YES,
        "return torch.tensor([np.ones(shape) for _ in range(64)])": FREE,
    }
    assert verdicts(tmp_path, "TPF963") == {
        'torch.save(model.state_dict(), "each.pt")': YES,
        'torch.save(model.state_dict(), "once.pt")': NO,
    }
    assert verdicts(tmp_path, "TPF123") == {"gc.collect()": YES}


PLAIN = """
import weakref

def total(parts):
    out = torch.zeros(64, 8)
    for part in parts:
        out = torch.cat([out, part])
    return out

def rows(x: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] / x[i].norm()
    return out

def cast(x: torch.Tensor):
    return x.type(torch.LongTensor)

def copied(x: torch.Tensor):
    needless = x.clone()
    return needless + 1

model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []
for step in range(6):
    x = torch.ones(16, 4)
    model(x).sum().backward()
    optimizer.step()
    total([torch.ones(2048, 8)] * 3)
    rows(x)
    cast(x)
    copied(x)
    dead = x.clone()
    storage = weakref.ref(dead.untyped_storage())
    del dead
    seen.append((storage() is None, x._version, x.clone()._version))
assert seen == [(True, 0, 0)] * 6, seen
"""
AFTER = """
import torch
from torch import nn
from perflint.tracer.session import trace
import copy, gc

before = torch.Tensor.__deepcopy__, nn.Parameter.__deepcopy__, list(gc.callbacks), torch.Tensor.__dict__.get("clone")
with trace():
    assert torch.Tensor.__deepcopy__ is not before[0]
    kept = [torch.ones(2).clone() for _ in range(100)][0]
    other = copy.deepcopy(nn.Parameter(kept))
after = torch.Tensor.__deepcopy__, nn.Parameter.__deepcopy__, list(gc.callbacks), torch.Tensor.__dict__.get("clone")
assert before == after
"""


def test_without_a_gpu(tmp_path: Path) -> None:
    trace = traced(tmp_path, PLAIN, simulate=False)
    # Built-in functions are watched in two steps, of which the first ends before the call; methods in all of them.
    assert trace.header.call_steps == 2
    assert observed(trace, "out = torch.cat") == {"cat.apart": 1, "cat.grew": 2}
    assert observed(trace, "needless = ")["copy.unwritten"] == 6
    assert verdicts(tmp_path, "TPF207") == {"out = torch.cat([out, part])": FREE}
    assert verdicts(tmp_path, "TPF208") == {"for i in range(x.shape[0]):": OPEN}
    assert verdicts(tmp_path, "TPF213")["needless = x.clone()"] is YES
    assert verdicts(tmp_path, "TPF206")["return x.type(torch.LongTensor)"] is OPEN


def test_nothing_stays(tmp_path: Path) -> None:
    (tmp_path / "after.py").write_text(AFTER)
    done = warm.script(tmp_path, "after.py")
    assert done.code == 0, done.err


def test_copies_that_the_program_sees_are_not_followed() -> None:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from perflint.tracer.places import Locator
    from perflint.tracer.recording import Recording
    from perflint.tracer.witnesses.base import Call
    from perflint.tracer.witnesses.duplicates import Duplicates

    operators: list[str] = []

    class Logged(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            operators.append(str(func))
            return func(*args, **(kwargs or {}))

    recording = Recording(Locator(Path.cwd()))
    witness = Duplicates(recording, lambda do: do, lambda thing: None)
    witness.start()
    try:
        follow = next(handle for owner, name, handle in witness.calls() if name == "clone")
        x = torch.ones(2)
        with Logged():
            y = x.clone()
            follow(Call(torch.Tensor.clone, (x,), {}, y, recording.now(None)))
        assert operators == ["aten.clone.default"]
        follow(Call(torch.Tensor.clone, (x,), {}, x.clone(), recording.now(None)))
    finally:
        witness.stop()
    assert [seen.fact for seen in recording.observations()] == ["copy.made", "copy.unwritten", "copy.of-kept"]

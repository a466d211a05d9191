"""Profiles of the user's own torch.profiler as evidence: a recorded one, and events of a GPU as Kineto writes them."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perflint.tracer.events import Gap, Kernel, Observation, Sync, SyncCost
from perflint.tracer.file import TraceError, read_trace
from tests.cli.command import Command, python

RECORDED = """\
import torch
from torch.profiler import ProfilerActivity, profile, schedule


def read(x):
    return x.item()


def train(model, data, profiler):
    total = 0.0
    for x in data:
        loss = model(x).sum()
        loss.backward()
        total += loss.item()
        total += read(loss)
        if loss > 3:
            total += 1
        profiler.step()
    return total


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Linear(4, 4).to(device)
    data = [torch.randn(2, 4, device=device) for _ in range(6)]
    steps = schedule(wait=1, warmup=1, active=3, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], with_stack=True, schedule=steps) as profiler:
        train(model, data, profiler)
    profiler.export_chrome_trace("profile.json")


main()
"""
TRAIN = """\
import torch


def train(model, loader, optimizer):
    for x in loader:
        loss = model(x.cuda())
        loss.backward()
        optimizer.step()
        first = loss.item()
        second = loss.max().item()
        if first > 3:
            note(loss)
        show(loss)


def note(loss):
    if loss.ndim:
        print(loss.min().item())
    else:
        print(loss.item())


def show(loss):
    return helpers.plot(loss.nonzero())
"""
US = 1000.0


class Kineto:
    """Writes events as Kineto does. The clock advances with each event; times are in microseconds."""

    def __init__(self) -> None:
        self.now = 4575402112347.243
        self.events: list[dict[str, Any]] = []
        self._correlation = 100
        self._gpu = self.now
        self.metadata()

    def metadata(self) -> None:
        """Events that are no work, which real files have."""
        self.events += [
            {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": self.now, "args": {"name": "python"}},
            {"ph": "s", "id": 5, "pid": 7, "tid": 7, "ts": self.now, "cat": "ac2g", "name": "ac2g"},
            {"ph": "i", "s": "t", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "x", "ts": 1.0},
        ]

    def add(self, category: str, name: str, start: float, length: float, **arguments: object) -> None:
        """A whole event."""
        event = {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 7, "ts": start, "dur": length}
        self.events.append(event | {"args": arguments})

    @contextmanager
    def inside(self, category: str, name: str) -> Iterator[None]:
        """An event around others."""
        start = self.now
        self.now += 1
        yield
        self.now += 1
        self.add(category, name, start, self.now - start)

    def python(self, name: str) -> Any:
        """A Python function."""
        return self.inside("python_function", name)

    def kernel(self, length: float) -> None:
        """A launch, and its work on the GPU."""
        self._correlation += 1
        self.add("cuda_runtime", "cudaLaunchKernel", self.now, 4.0, cbid=211, correlation=self._correlation)
        start = max(self.now + 6, self._gpu + 1)
        facts = {"device": 0, "stream": 7, "correlation": self._correlation, "grid": [1, 1, 1]}
        self.add("kernel", "void at::native::gemm<float>(float*)", start, length, **facts)
        self._gpu = start + length
        self.now += 5

    def wait(self, method: str, operator: str = "aten::item") -> None:
        """A call of a tensor's method that copies a number to the CPU and waits for it."""
        call = self.python(f"<built-in method {method} of Tensor object at 0x7f95d1ed090>")
        with call, self.inside("cpu_op", operator):
            self.copy()

    def copy(self) -> None:
        """A copy to the CPU, and the wait for it."""
        self._correlation += 1
        self.add("cuda_runtime", "cudaMemcpyAsync", self.now, 3.0, cbid=41, correlation=self._correlation)
        start = max(self.now + 4, self._gpu + 1)
        name = "Memcpy DtoH (Device -> Pageable)"
        self.add("gpu_memcpy", name, start, 1.5, device=0, stream=7, correlation=self._correlation, bytes=4)
        self._gpu = start + 1.5
        self.now += 3.5
        end = max(self._gpu + 2, self.now + 1)
        self.add("cuda_runtime", "cudaStreamSynchronize", self.now, end - self.now, cbid=131, correlation=9)
        self.now = end + 1

    def write(self, path: Path, **facts: object) -> None:
        """Write the file, compressed if its name says so."""
        document = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150000000000}],
            "with_stack": 1,
            "traceEvents": self.events,
            "baseTimeNanoseconds": 1790857026000000000,
        }
        data = json.dumps(document | facts, indent=2).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def profiled(steps: int = 6, stacks: bool = True, marks: bool = True) -> Kineto:
    """A profile of TRAIN: `note` runs in each second step."""
    made = Kineto()
    with made.python("train.py(30): <module>"), made.python("train.py(4): train"):
        for step in range(steps):
            begin = made.now
            with made.python("torch/nn/modules/module.py(1773): _wrapped_call_impl"):
                made.kernel(400)
            with made.python("torch/_tensor.py(586): backward"):
                made.kernel(800)
            with made.python("torch/optim/optimizer.py(484): wrapper"):
                made.kernel(200)
            made.wait("item")
            made.now += 300
            made.wait("item")
            if step % 2:
                with made.python("train.py(16): note"):
                    made.wait("item")
            with made.python("train.py(23): show"):
                made.wait("nonzero", "aten::nonzero")
            if marks:
                made.add("user_annotation", f"ProfilerStep#{step + 3}", begin - 0.5, made.now - begin, **{"Ev Idx": 0})
                made.add("gpu_user_annotation", f"ProfilerStep#{step + 3}", begin + 20, made.now - begin)
    if not stacks:
        made.events = [event for event in made.events if event.get("cat") != "python_function"]
    return made


def verdicts(perflint: Command, *options: str) -> dict[int, str]:
    """The verdicts of a check by line."""
    ran = perflint("check", ".", "--profile=audit", "--select=TPF1", "--output-format=json", "--no-cache", *options)
    found = json.loads(ran.out)["findings"]
    return {each["line"]: f"{each['verdict']['ruling']}: {each['verdict']['why']}" for each in found if each["verdict"]}


def test_a_recording_of_torch_profiler(perflint: Command) -> None:
    perflint.write("train.py", RECORDED)
    ran = python("train.py", cwd=perflint.folder)
    assert ran.code == 0, ran.err
    found = verdicts(perflint, "--trace=profile.json")
    expected = "undecided: the profile shows that it reads a number once a step; nothing waits in a run without a GPU"
    assert [found[line] for line in (6, 14, 16)] == [expected] * 3
    ran = perflint("check", ".", "--trace=profile.json")
    assert "the trace is of a run without a GPU" in ran.err and "note: a profile refutes no finding" in ran.err


def test_waits_of_a_gpu(perflint: Command) -> None:
    perflint.write("train.py", TRAIN)
    profiled().write(perflint.folder / "profile.json.gz")
    found = verdicts(perflint, "--trace=profile.json.gz")
    # The calls of one loop come in order; the first waits for the whole queue, the second for nothing.
    assert found[9].startswith("confirmed: ") and "ms a step" in found[9] and "once a step" in found[9]
    assert found[10].startswith("confirmed")
    shared = "undecided: one of 2 calls of `item` in `note`: together these wait 0.5 times a step, "
    assert found[18].startswith(shared) and found[20].startswith(shared)
    assert "the profile does not show which" in found[18]
    assert found[24].startswith("confirmed")
    # Nothing was recorded for the copy to the GPU, which is not evidence against it.
    assert 6 not in found


def test_the_records_are_those_of_a_trace(perflint: Command) -> None:
    perflint.write("train.py", TRAIN)
    profiled().write(perflint.folder / "profile.json")
    trace = read_trace(perflint.folder / "profile.json")
    assert trace.header.devices == ("NVIDIA H200",) and trace.header.steps == 6
    assert {(sync.place.line, sync.hits.windows) for sync in trace.of(Sync)} == {
        (9, (1, 1, 1, 1, 1, 1)),
        (10, (1, 1, 1, 1, 1, 1)),
        (24, (1, 1, 1, 1, 1, 1)),
    }
    assert {each.place.line for each in trace.of(Observation) if each.place} == {18, 20}
    assert trace.of(Gap) and trace.of(Kernel)[0].name.startswith("void at::native")
    costs = {cost.place.line: cost.ms for cost in trace.of(SyncCost)}
    # The first wait keeps the CPU from 300 µs of its own work and the launches that follow.
    assert costs[9] > 0.2 and costs[9] > costs.get(24, 0.0)
    text = perflint("report", "profile.json", "--format=text", "--output=-")
    assert "A profile does not list the lines that ran" in text.out
    assert text.code == 0 and "train.py:9" in text.out
    assert perflint("compare", "profile.json", "profile.json").code == 0


@pytest.mark.parametrize(
    ("made", "note"),
    [
        (profiled(stacks=False), "no wait has a place: record it with `with_stack=True`"),
        (profiled(marks=False), "it has no steps, so that counts are of the whole"),
    ],
)
def test_limits_are_reported(perflint: Command, made: Kineto, note: str) -> None:
    perflint.write("train.py", TRAIN)
    made.write(perflint.folder / "profile.json")
    ran = perflint("check", ".", "--trace=profile.json")
    assert note in ran.err


def test_functions_that_moved_get_no_verdict(perflint: Command) -> None:
    perflint.write("train.py", "x = 1\n" * 40 + TRAIN)
    profiled().write(perflint.folder / "profile.json")
    ran = perflint("check", ".", "--trace=profile.json", "--profile=audit", "--select=TPF1")
    assert "confirmed" not in ran.out and "are in no function of this folder" in ran.err
    # A package below the folder is found, too: a profile names files from Python's search path on.
    perflint.write("src/train.py", TRAIN)
    (perflint.folder / "train.py").unlink()
    assert verdicts(perflint, "--trace=profile.json")[9].startswith("confirmed")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{}", "it has no `traceEvents`"),
        (b'{"traceEvents": 3}', "it has no `traceEvents`"),
        (b'{"traceEvents": [', "it is not JSON, or cut off"),
        (b'{"traceEvents": ' + b"[" * 100_000, "it is not JSON, or cut off"),
        (gzip.compress(b'{"traceEvents": []}', mtime=0)[:-9], "cut off"),
        (b"# text", "is not a trace"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "profile.json").write_bytes(data)
    with pytest.raises(TraceError, match=message):
        read_trace(tmp_path / "profile.json")


@pytest.mark.parametrize("event", ["{}", '{"ph":"M","args":[%s0]}' % ("{}," * 99), "[[]]"])
def test_a_file_that_was_made_to_fill_the_memory_takes_little(tmp_path: Path, event: str) -> None:
    """Python takes twenty times as much memory for such values as for their text."""
    text = f'{{"traceEvents": [{event}{f",{event}" * (200_000 // len(event))}], "x": [{"{}," * 99_999}0]}}'
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text.encode(), 1))
    tracemalloc.start()
    try:
        read_trace(tmp_path / "a.json.gz")
        # `json.load` takes 12 to 15 million.
        assert tracemalloc.get_traced_memory()[1] < 7_500_000
    finally:
        tracemalloc.stop()


def test_small_files_do_not_unpack_to_large_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = '{"ph":"X","name":"","ts":1.5}'
    text = f'{{"traceEvents": [{event}{f",{event}" * 999}]}}'
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text.encode()))
    assert read_trace(tmp_path / "a.json.gz").records
    monkeypatch.setattr("perflint.tracer.profiles._MOST", 999)
    with pytest.raises(TraceError, match="more than 999 events"):
        read_trace(tmp_path / "a.json.gz")
    monkeypatch.setattr("perflint.tracer.profiles._SMALL", 10_000)
    with pytest.raises(TraceError, match="when it is unpacked: record fewer steps"):
        read_trace(tmp_path / "a.json.gz")


def test_strange_events_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    strange = [3, None, {"ph": "X"}, {"ph": "X", "name": 3, "ts": 1}, {"ph": "X", "name": "a", "ts": "b"}]
    more = [{"ph": "X", "name": "a", "ts": 1.0, "args": 3}, {"ph": "X", "name": "x.py(1): f", "ts": 1, "cat": []}]
    more += [{"ph": "X", "name": "perflint:sync:x", "cat": "user_annotation", "ts": 1}]
    more += [{"ph": "X", "name": "ProfilerStep#1", "cat": "user_annotation", "ts": 1e300, "tid": []}]
    (tmp_path / "profile.json").write_text(json.dumps({"traceEvents": [*strange, *more], "deviceProperties": 3}))
    assert read_trace(tmp_path / "profile.json").of(Sync) == ()


SELECTING = """\
import torch


def train(model, loader):
    for x in loader:
        x = x.cuda(non_blocking=True)
        rows = x[x > 0]
        total = float(rows.sum())
        first = rows[0]


def other(x, i):
    return float(x[i])
"""


def test_waits_without_a_frame(perflint: Command) -> None:
    """Python tests, converts and indexes tensors without a frame; the operator tells which of these it was."""
    perflint.write("train.py", SELECTING)
    made = Kineto()
    with made.python("train.py(4): train"):
        for step in range(4):
            begin = made.now
            made.kernel(400)
            with made.inside("cpu_op", "aten::index"), made.inside("cpu_op", "aten::nonzero"):
                made.copy()
            with made.inside("cpu_op", "aten::item"):
                made.copy()
            # The library, not this function, calls `float`.
            with made.python("lib/plots.py(3): draw"):
                made.wait("float")
            # An operator that none of these needs is in no place.
            with made.inside("cpu_op", "aten::something"):
                made.copy()
            with made.python("train.py(12): other"), made.inside("cpu_op", "aten::item"):
                made.copy()
            made.add("user_annotation", f"ProfilerStep#{step}", begin - 0.5, made.now - begin)
    made.write(perflint.folder / "profile.json")
    trace = read_trace(perflint.folder / "profile.json")
    assert {sync.place.line for sync in trace.of(Sync)} == {7}
    shared = {(each.place.line, each.detail) for each in trace.of(Observation) if each.place is not None}
    assert shared == {
        (7, "one of 2 conversions and indices in `train`"),
        (8, "one of 2 conversions and indices in `train`"),
        (13, "one of 2 conversions and indices in `other`"),
    }
    ran = perflint("check", ".", "--trace=profile.json")
    assert "8 waits are in no function of this folder" in ran.err


TESTING = """\
import torch


def find(x, rows, verbose):
    if verbose:
        print(x)
    if x not in rows:
        rows.append(x)
"""


def test_a_search_in_a_list_tests_tensors(perflint: Command) -> None:
    perflint.write("train.py", TESTING)
    made = Kineto()
    with made.python("train.py(4): find"), made.inside("cpu_op", "aten::is_nonzero"):
        made.copy()
    made.write(perflint.folder / "profile.json")
    trace = read_trace(perflint.folder / "profile.json")
    assert not trace.of(Sync)
    lines = {each.place.line for each in trace.of(Observation) if each.place is not None}
    assert lines == {5, 7}

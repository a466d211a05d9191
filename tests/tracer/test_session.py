"""The watchers together, on the host: steps, modules, compilation, and what is left behind."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import perflint
from perflint.tracer.compilation import CompilationWatch
from perflint.tracer.events import (
    CandidateLine,
    Compilation,
    CudagraphSkip,
    Failure,
    GraphBreak,
    ModuleCall,
    Recompile,
    Step,
    Sync,
)
from perflint.tracer.file import TraceError, read_trace
from perflint.tracer.lines import Lines
from perflint.tracer.options import Options, output_of
from perflint.tracer.places import Locator, Owner
from perflint.tracer.recording import PLACE_LIMIT, STEP_LIMIT, WINDOWS, Recording
from perflint.tracer.session import Session
from perflint.tracer.steps import SWITCH_AFTER, StepFinder, StepSource
from perflint.tracer.syncs import MESSAGE
from perflint.tracer.trace import Trace

if find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def sync() -> None:
    with warnings.catch_warnings():
        # Where nobody listens any more.
        warnings.simplefilter("ignore")
        warnings.warn(MESSAGE, stacklevel=1)


def a_model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU())


@pytest.fixture
def finder() -> Iterator[tuple[StepFinder, list[str]]]:
    """A finder that watches, and what it has said."""
    said: list[str] = []
    found = StepFinder(lambda: said.append("end"), lambda: said.append("restart"))
    found.start()
    yield found, said
    found.stop()


def test_the_first_of_two_optimizers_sets_the_pace(finder: tuple[StepFinder, list[str]]) -> None:
    one, two = (torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1) for _ in range(2))
    for _ in range(3):
        one.step()
        two.step()
    assert finder[1] == ["restart", "end", "end", "end"]
    for _ in range(SWITCH_AFTER + 2):
        two.step()
    assert finder[1].count("end") == 3 + 2
    assert finder[0].source is StepSource.OPTIMIZER


def test_a_loader_without_an_optimizer(finder: tuple[StepFinder, list[str]]) -> None:
    model = a_model()
    for (batch,) in DataLoader(TensorDataset(torch.ones(6, 4)), batch_size=2):
        model(batch)
    # The fourth is the one that finds no batch.
    assert finder[1] == ["restart"] + ["end"] * 4


def test_calls_of_root_modules_without_a_loader(finder: tuple[StepFinder, list[str]]) -> None:
    model = a_model()
    for _ in range(3):
        model(torch.ones(1, 4))
    with pytest.raises(RuntimeError):
        model(torch.ones(1, 5))
    model(torch.ones(1, 4))
    assert finder[1] == ["restart"] + ["end"] * 5


def test_calls_of_compiled_modules_are_steps_too(finder: tuple[StepFinder, list[str]]) -> None:
    inner = a_model()
    inner.compile(backend="eager")
    model = nn.Sequential(inner)
    for _ in range(2):
        model(torch.ones(1, 4))
    inner(torch.ones(1, 4))
    model.compile(backend="eager")
    for _ in range(3):
        model(torch.ones(1, 4))
    assert finder[1] == ["restart"] + ["end"] * 6
    finder[0].rest()
    model(torch.ones(1, 4))
    assert finder[1] == ["restart"] + ["end"] * 6


def test_marks_silence_the_rest(finder: tuple[StepFinder, list[str]]) -> None:
    model = a_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        model(torch.ones(1, 4)).sum().backward()
        optimizer.step()
        finder[0].mark()
    assert finder[0].source is StepSource.MARKED
    assert finder[1] == ["restart", "end"] * 3 + ["end"]


def test_nothing_of_a_finder_is_left() -> None:
    from torch.nn.modules import module
    from torch.utils.data import dataloader

    from perflint.tracer import optimizer_steps

    before, compiler = dataloader._BaseDataLoaderIter.__next__, nn.Module.compile
    found = StepFinder(lambda: None, lambda: None)
    found.start()
    assert dataloader._BaseDataLoaderIter.__next__ is not before
    found.stop()
    assert dataloader._BaseDataLoaderIter.__next__ is before and nn.Module.compile is compiler
    assert not module._global_forward_hooks and not module._global_forward_pre_hooks
    assert not optimizer_steps._listeners


def training(steps: int, each: Callable[[int], object] = lambda step: None) -> nn.Module:
    model = a_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        model(torch.ones(2, 4)).sum().backward()
        each(step)
        optimizer.step()
    return model


def traced(do: Callable[[Session], object], **options: Any) -> Trace:
    with perflint.trace(**options) as session:
        do(session)
    assert session.trace is not None
    assert not session.trace.of(Failure), session.trace.of(Failure)
    return session.trace


def test_steps_after_warm_up() -> None:
    init, new, to = nn.Module.__init__, torch.Tensor.__new__, torch.Tensor.to
    trace = traced(lambda _: training(12, lambda step: sync()), warmup=3, steps=4)
    assert (trace.header.step_source, trace.header.steps, trace.header.ended) == ("optimizer", 4, "finished")
    assert [step.index for step in trace.of(Step)] == [0, 1, 2, 3]
    (found,) = trace.of(Sync)
    # Before the first recorded step three were seen; after the last nobody listened.
    assert (found.hits.steps, found.hits.outside, found.hits.windows) == (4, 3, (1, 1, 1, 1))
    assert (nn.Module.__init__, torch.Tensor.__new__, torch.Tensor.to) == (init, new, to)
    assert not torch.nn.modules.module._has_any_global_hook()


def test_without_warm_up_all_counts() -> None:
    trace = traced(lambda _: training(3, lambda step: sync()))
    assert trace.of(Sync)[0].hits.steps == 3 and trace.of(Sync)[0].hits.outside == 0
    assert trace.header.steps == 3
    assert trace.step_ms is not None and 0 < trace.step_ms < 10_000


def test_marked_steps() -> None:
    def do(session: Session) -> None:
        for _ in range(5):
            training(2)
            session.step()

    trace = traced(do, warmup=1)
    assert (trace.header.step_source, trace.header.steps) == ("marked", 4)


def test_modules_are_recorded_as_they_are_called() -> None:
    def do(session: Session) -> None:
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).to(memory_format=torch.channels_last)
        for _ in range(4):
            with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
                model.eval()(torch.ones(1, 3, 8, 8).to(memory_format=torch.channels_last))
            session.step()

    trace = traced(do)
    calls = {call.name: call for call in trace.of(ModuleCall)}
    assert set(calls) == {"", "0", "1"}
    convolution = calls["0"]
    assert convolution.type == "torch.nn.modules.conv.Conv2d" and convolution.settings.startswith("3, 4,")
    assert convolution.made is not None and convolution.made.text.startswith("model = nn.Sequential(nn.Conv2d(3, 4, 3)")
    assert convolution.made.function.endswith("do")
    (given,), (output,) = convolution.inputs, convolution.outputs
    assert (given.shape, given.dtype, given.layout, given.device) == ((1, 3, 8, 8), "float32", "channels_last", "cpu")
    assert (output.shape, output.dtype, output.layout) == ((1, 4, 6, 6), "bfloat16", "channels_last")
    assert (convolution.training, convolution.grad, convolution.inference) == (False, False, False)
    assert convolution.autocast == "bfloat16"
    # Only some steps are looked at.
    assert (convolution.count, convolution.steps) == (2, 2)


def test_a_class_of_the_users_is_made_where_it_is_called() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.layer(x)
            return result

    def do(session: Session) -> None:
        net = Net()
        net(torch.ones(1, 2))

    made = {call.name: call.made.text for call in traced(do).of(ModuleCall) if call.made}
    assert made == {"": "net = Net()", "layer": "self.layer = nn.Linear(2, 2)"}


class OwnHash(nn.Linear):
    """As metrics do, it is hashed by attributes that it gets after `Module.__init__`, and equal to others."""

    def __init__(self) -> None:
        super().__init__(4, 4)
        self.states = ("a",)

    def __hash__(self) -> int:
        return hash(self.states)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnHash)


def test_the_hash_of_a_module_is_not_asked_for() -> None:
    def do(_: Session) -> None:
        first, second = OwnHash(), nn.Linear(4, 4)
        second(first(torch.ones(2, 4))).sum().backward()

    (call,) = traced(do).of(ModuleCall)
    assert call.made is not None and call.made.text == "first, second = OwnHash(), nn.Linear(4, 4)"


def test_graph_breaks_and_recompiles() -> None:
    def do(_: Session) -> None:
        def f(x: torch.Tensor) -> torch.Tensor:
            x = x + 1
            torch._dynamo.graph_break()
            return x * 2

        compiled = torch.compile(f, backend="eager")
        compiled(torch.ones(2))
        compiled(torch.ones(2, dtype=torch.float64))

    torch._dynamo.reset()
    trace = traced(do)
    places = [found.place.text for found in trace.of(GraphBreak) if found.place]
    assert "torch._dynamo.graph_break()" in places
    assert any("dtype mismatch" in found.reason for found in trace.of(Recompile))
    times = {made.function: made for made in trace.of(Compilation)}
    assert times["f"].count >= 2 and 0 < times["f"].seconds < 100 and times["f"].file.endswith("test_session.py")


def test_what_the_compiler_wrote_is_not_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    written = Path(tempfile.gettempdir(), "torchinductor_me", "ab", "cab.py")
    assert Locator(tmp_path).owner(str(written)) is Owner.SYSTEM
    assert Locator(tmp_path).owner(str(tmp_path / "train.py")) is Owner.USER
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    assert Locator(tmp_path).owner(str(tmp_path / "train.py")) is Owner.SYSTEM


def test_lines_of_compiled_code_do_not_run_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # Only Python 3.12 and later see all lines.
    monkeypatch.setattr(Lines, "start", lambda self: setattr(self, "sees_all", True))
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    assert traced(lambda _: None).header.lines_recorded
    doubled = torch.compile(lambda x: x * 2, backend="eager")
    assert not traced(lambda _: doubled(torch.ones(2))).header.lines_recorded


def test_what_experiments_compile_is_not_the_programs() -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    watch = CompilationWatch()
    watch.keep(Locator(Path.cwd()))
    torch.compile(lambda x: x * 2, backend="eager")(torch.ones(2))
    assert not watch.has_compiled and CompilationWatch().has_compiled


def test_skipped_cuda_graphs_are_recorded_with_the_reason_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._dynamo.utils import counters
    from torch._inductor.cudagraph_utils import log_cudagraph_skip_and_bump_counter

    monkeypatch.setitem(counters, "inductor", Counter())
    reason = "skipping cudagraphs due to cpu device (arg0_1). Found from : \n   File 'train.py', line 4, in step"

    def do(_: Session) -> None:
        for _turn in range(2):
            log_cudagraph_skip_and_bump_counter(reason)
        log_cudagraph_skip_and_bump_counter("a word on CUDA graphs that are used")

    (skip,) = traced(do).of(CudagraphSkip)
    assert (skip.reason, skip.count) == (reason, 2)


def test_hooks_and_wrappers_break_no_graph() -> None:
    """With the tracer, a module compiles into one graph as without it."""

    def do(_: Session) -> None:
        compiled = torch.compile(a_model(), backend="eager", fullgraph=True)
        compiled(torch.ones(2, 4).to("cpu", non_blocking=True))
        torch.compile(lambda x: x.to("cpu", non_blocking=True) + 1, backend="eager", fullgraph=True)(torch.ones(2))

    torch._dynamo.reset()
    assert not traced(do).of(GraphBreak)


def test_lines_of_the_block() -> None:
    trace = traced(lambda _: training(3), root=Path(__file__).parent)
    name = Path(__file__).name
    ran = {line.line for line in trace.of(CandidateLine) if line.file == name and line.in_steps}
    first = training.__code__.co_firstlineno
    assert {first + 4, first + 5, first + 6} <= ran


def later(model: nn.Module) -> int:
    return int(model(torch.ones(2, 4)).argmax())


def test_lines_that_run_after_the_recorded_steps_are_not_watched() -> None:
    def lines(steps: int) -> dict[int, bool]:
        trace = traced(lambda _: later(training(8)), root=Path(__file__).parent, warmup=1, steps=steps)
        return {line.line: line.watched for line in trace.of(CandidateLine) if line.file == Path(__file__).name}

    last = later.__code__.co_firstlineno + 1
    first = training.__code__.co_firstlineno
    assert (lines(3)[last], lines(3)[first + 4]) == (False, True)
    assert (lines(0)[last], lines(0)[first + 4]) == (True, True)


def test_the_file_and_an_exception(tmp_path: Path) -> None:
    with pytest.raises(KeyError), perflint.trace(tmp_path / "a.gz", root=tmp_path) as session:
        raise KeyError("x")
    assert session.written == tmp_path / "a.gz"
    assert read_trace(tmp_path / "a.gz").header.ended == "KeyError"


def test_only_one_trace_at_a_time() -> None:
    with perflint.trace(), pytest.raises(TraceError, match="already"), perflint.trace():
        pass
    with perflint.trace():
        pass


def test_a_fault_of_the_tracer_is_told_and_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("broken")

    with perflint.trace() as session:
        monkeypatch.setattr(session._recording, "end_step", broken)
        model = training(2)
    assert model is not None and session.trace is not None
    assert "OSError: broken" in session.trace.of(Failure)[0].message


def test_the_size_of_a_long_run_is_bounded() -> None:
    recording = Recording(Locator(Path(__file__).parent))
    recording.records = True

    def hit() -> None:
        import sys

        recording.sync("implicit", sys._getframe())

    for step in range(10_000):
        hit()
        if step % 2:
            hit()
        recording.end_step(2.0 if step % 2 else 1.0, profiled=step in (7, 8))
    found = {sync.place.line for sync in recording.syncs()}
    assert len(found) == 1
    (hits,) = (sync.hits for sync in recording.syncs())
    assert hits.steps == 15_000 and len(hits.windows) <= WINDOWS
    assert set(hits.windows[:-1]) == {recording.per_window * 3 // 2} and sum(hits.windows) == 15_000
    assert sum(step.count for step in recording.steps) == 10_000
    assert len(recording.steps) < STEP_LIMIT
    assert [step.index for step in recording.steps if step.profiled] == [7, 8]
    assert all(step.count == 1 for step in recording.steps if step.profiled)
    total = sum(step.count * step.ms for step in recording.steps)
    assert total == pytest.approx(15_000)
    indices = [step.index for step in recording.steps]
    assert indices == sorted(indices)


def test_code_made_at_run_time_does_not_grow_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perflint.tracer.recording.PLACE_LIMIT", 5)
    recording = Recording(Locator(Path("/")))
    for number in range(20):
        source = "\n" * number + "import sys; recording.sync('implicit', sys._getframe())"
        exec(compile(source, "/generated.py", "exec"), {"recording": recording})
    assert len(recording.syncs()) == 5 < PLACE_LIMIT


def test_a_step_that_the_gpu_has_timed() -> None:
    recording = Recording(Locator(Path("/")))
    for _ in range(3):
        recording.end_step(1.0, profiled=False)
    recording.time_step(1, 5.0)
    recording.time_step(9, 7.0)
    assert [step.ms for step in recording.steps] == [1.0, 5.0, 1.0]


@pytest.mark.parametrize(
    ("output", "suffix", "expected"),
    [
        ("/a/b.jsonl.gz", "rank3", "/a/b.rank3.jsonl.gz"),
        ("/a/b", "rank3", "/a/b.rank3"),
        ("/a/.b.gz", "x", "/a/.b.x.gz"),
        ("/a/b.gz", "", "/a/b.gz"),
    ],
)
def test_names_of_files(output: str, suffix: str, expected: str) -> None:
    assert output_of(output, suffix) == Path(expected)


def test_options_survive_the_way_to_another_process() -> None:
    options = Options("/a", "/b", 1, 2, 3, ("c", "é"), True)
    assert Options.from_json(options.to_json()) == options

"""Puts the watchers together: when each listens, and what becomes of what they saw."""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

from perflint import __version__
from perflint.engine.crashes import contained
from perflint.findings import Problem
from perflint.tracer import copies, simulation, syncs
from perflint.tracer.compilation import CompilationWatch
from perflint.tracer.events import Experiment, Failure, Header, Place, Record, Step
from perflint.tracer.experiments.live import Live
from perflint.tracer.experiments.run import Experiments, idle_part
from perflint.tracer.file import TraceError, write_trace
from perflint.tracer.gaps import Analysis
from perflint.tracer.lines import Lines, LineUse
from perflint.tracer.memory import AllocatorWatch, PeakWatch
from perflint.tracer.modules import MadeAt, ModuleCalls
from perflint.tracer.options import EXPERIMENT_SECONDS, Options, output_of
from perflint.tracer.places import Locator, Owner
from perflint.tracer.promises import Promises
from perflint.tracer.recording import Recording
from perflint.tracer.steps import StepFinder
from perflint.tracer.timeline import EXTRA, Timeline
from perflint.tracer.timing import StepClock
from perflint.tracer.trace import Trace
from perflint.tracer.witnesses.watching import Witnesses

WINDOW_AFTER = 10
"""Recorded steps before the profiler starts, where all steps are recorded."""


class Stage(Enum):
    """The phase of a session."""

    WARMUP = "warmup"
    RECORDING = "recording"
    PROFILING = "profiling"
    DONE = "done"


_current: Session | None = None


class Session:
    """One trace of this process."""

    def __init__(self, options: Options, program: tuple[str, ...] = ()) -> None:
        self.options = options
        self.trace: Trace | None = None
        """The recorded trace, once the session has ended."""
        self.written: Path | None = None
        """The file that holds it."""
        self.kept: Path | None = None
        """The file of an earlier run, which a program that failed before it did anything does not replace."""
        self.locator = Locator(Path(options.root), map(Path, options.own))
        self._program = program
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._stage = Stage.WARMUP
        self._passed = 0
        self._step_began = time.perf_counter()
        self._clock = StepClock(has_gpu=not options.simulate)
        self._profiled = 0
        self._handling: deque[float] = deque(maxlen=256)
        self._problems: list[Problem] = []
        self._inside = threading.local()
        self._is_child = False
        self._is_armed = False
        self._pid = os.getpid()
        self._rank: tuple[int, int] | None = None
        self._ends: list[Callable[[], None]] = []
        self._recording = Recording(self.locator, Promises(self.locator, options.sync_free))
        self._finder = StepFinder(self._guarded(self._step_ended), self._guarded(self._restart))
        self._lines = Lines(lambda path: self.locator.owner(path) is Owner.USER, options.simulate)
        self._line_use = LineUse(self._lines)
        self._made = MadeAt(self.locator)
        self._modules = ModuleCalls(self._made.get, self._guarded)
        self._live = Live(self._place_of)
        self._experiments: list[Experiment | Failure] | None = None
        if options.experiments:
            self._modules.on_root = self._guarded(self._live.called)
            self._finder.on_optimizer = self._guarded(self._live.stepped)
        self._compilation = CompilationWatch()
        self._witnesses = Witnesses(self._recording, self._guarded, self._made.get, options.simulate)
        if not options.simulate:
            self._compilation.on_use = self._witnesses.leave_builtins
        self._allocator = AllocatorWatch()
        self._peak = PeakWatch(self._line_of)
        self._churn: tuple[Record, ...] = ()
        self._timeline = Timeline()
        self._analysis: Analysis | None = None

    # What the program and its runner call.

    def start(self) -> None:
        """Begin. Raises TraceError where another trace runs in this process."""
        global _current
        if _current is not None:
            raise TraceError("a trace is already being recorded in this process", "end the other one first")
        _current = self
        if self.options.simulate and "torch" in sys.modules:
            # The watch of waits wraps functions that the simulation replaces with the identity.
            simulation.start(self._fail)
        self._listen()
        self._lines.start()
        if not self.options.warmup:
            self._begin_recording()

    def arm(self) -> None:
        """torch has been imported: watch it."""
        self._is_armed = True
        self._lines.renew()
        if self.options.simulate:
            simulation.start(self._fail)
        syncs.arm()
        # Before the finder, which may end the session: witnesses see the step that ended.
        self._witnesses.start()
        self._finder.start()
        self._modules.start()
        self._made.start()
        self._compilation.start()
        if self._stage is Stage.RECORDING:
            self._watch_steps()

    def step(self) -> None:
        """The program says that a step ended."""
        self._finder.mark()

    def finish(self, ended: str) -> Trace | None:
        """End, and write what was seen; a second call changes nothing.

        Gives None in a process that was forked from the traced one. Raises TraceError where the
        file cannot be written.
        """
        global _current
        if self._pid != os.getpid():
            return None
        if _current is self:
            _current = None
            with self._within():
                if self._timeline.runs:
                    self._timeline.abandon()
                self._peak.abandon()
                self._read_clock(wait=True)
                self._churn = self._churn or self._allocator.stop(self._recording.step)
                self._take_lines()
                self._stop_watching()
                self._finder.stop()
                self._made.stop()
                self._witnesses.stop()
                self._compilation.stop()
                self._lines.stop()
                if ended == "finished":
                    self._experiment()
            self._write(ended)
        return self.trace

    @property
    def saw_anything(self) -> bool:
        """True if the process did what a trace is about."""
        recording = self._recording
        return bool(recording.steps or recording.syncs() or recording.copies())

    # Stages.

    def _restart(self) -> None:
        """A better source of steps: what was seen so far was before them."""
        keep = not self.options.warmup
        self._recording.restart(keep)
        self._recording.records = False
        if self._timeline.runs:
            self._timeline.abandon()
        self._peak.abandon()
        self._stop_watching()
        self._listen()
        self._analysis, self._profiled, self._passed = None, 0, 0
        self._modules.restart(keep)
        self._witnesses.restart()
        self._live.forget()
        self._modules.start()
        self._line_use.restart(keep, watched=self._stage is not Stage.DONE)
        self._stage = Stage.WARMUP
        if keep:
            self._begin_recording()

    def _take_lines(self) -> None:
        watched = self._stage is not Stage.DONE
        self._line_use.take(in_steps=watched and self._recording.records, watched=watched)

    def _step_ended(self) -> None:
        ms = (time.perf_counter() - self._step_began) * 1000
        if self._stage is Stage.WARMUP:
            self._passed += 1
            if self._passed >= self.options.warmup:
                self._begin_recording()
        elif self._stage is not Stage.DONE:
            self._clock.end(self._recording.step)
            self._end_recorded_step(ms)
            self._read_clock()
        # What the tracer itself did just now is in no step.
        if self._recording.records and self._is_armed:
            self._clock.begin()
        self._step_began = time.perf_counter()

    def _read_clock(self, wait: bool = False) -> None:
        for step, ms in self._clock.passed(wait):
            self._recording.time_step(step, ms)

    def _begin_recording(self) -> None:
        self._line_use.take(in_steps=False)
        self._stage = Stage.RECORDING
        self._recording.records = True
        if self._is_armed:
            self._watch_steps()

    def _watch_steps(self) -> None:
        self._ends.append(copies.listen(self._guarded(self._recording.copy)))
        if not self.options.simulate:
            self._allocator.start()
        self._modules.records = True
        if not self._compilation.is_used:
            self._witnesses.begin_steps()

    def _end_recorded_step(self, ms: float) -> None:
        self._note_rank()
        if self._stage is Stage.PROFILING:
            self._end_profiled_step(ms)
            return
        self._recording.end_step(ms, profiled=False)
        self._modules.end_step()
        self._witnesses.end_step()
        self._line_use.end_step()
        if not self.options.simulate:
            self._peak.end_step(self._recording.step)
        if self._recording.step == (self.options.steps or WINDOW_AFTER) and not self._profiled:
            self._begin_profiling()
        elif self.options.steps and self._recording.step >= self.options.steps:
            self._done()

    def _begin_profiling(self) -> None:
        if self.options.simulate or not (self.options.window and Timeline.can_run()):
            if self.options.steps:
                self._done()
            return
        self._churn = self._allocator.stop(self._recording.step)
        try:
            self._timeline.start()
        except RuntimeError as error:
            self._fail("timeline", str(error))
            if self.options.steps:
                self._done()
            return
        self._stage = Stage.PROFILING
        self._witnesses.pause()
        self._timeline.step(self._recording.step)

    def _end_profiled_step(self, ms: float) -> None:
        self._profiled += 1
        self._recording.end_step(ms, profiled=True)
        if self._profiled < self.options.window + EXTRA:
            self._timeline.step(self._recording.step)
            return
        try:
            plain = [step.ms for step in self._recording.steps if not step.profiled]
            handling = median(self._handling) * 1e6 if self._handling else 0.0
            self._analysis = self._timeline.stop(median(plain) if plain else None, handling)
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            self._fail("timeline", f"{type(error).__name__}: {error}")
        self._stage = Stage.RECORDING
        self._witnesses.pause(False)
        if self.options.steps:
            self._done()

    def _done(self) -> None:
        """All that was asked for is there; the program goes on by itself."""
        self._peak.abandon()
        self._churn = self._churn or self._allocator.stop(self._recording.step)
        self._line_use.take(in_steps=True)
        self._stage = Stage.DONE
        self._recording.records = False
        self._stop_watching()
        if self._finder.is_final:
            self._finder.stop()
            self._made.stop()
            self._witnesses.rest()
        else:
            self._finder.rest()
        self._experiment()
        self._write("running")

    def _experiment(self) -> None:
        """Time changes to what was recorded, once, and on one rank."""
        rank, _ = self._rank or _rank_of_environment()
        if not self.options.experiments or self._experiments is not None or rank or self._is_child:
            return
        self._experiments = []
        self._compilation.keep(self.locator)
        idle = idle_part(Trace(self._header("running", rank, 1), tuple(self._step_records())))
        made = Experiments(self._modules.calls(), self._live, idle, self._modules.steps, self._made.get)
        self._experiments = made.run(self.options.experiments)

    # Watching.

    def _listen(self) -> None:
        self._ends.append(syncs.listen(self._guarded(self._synced)))

    def _stop_watching(self) -> None:
        self._modules.stop()
        while self._ends:
            self._ends.pop()()

    def _synced(self, kind: str, frame: FrameType | None) -> None:
        began = time.perf_counter()
        place = self._recording.sync(kind, frame)
        if not self._timeline.runs:
            self._handling.append(time.perf_counter() - began)
        elif place is not None:
            self._timeline.sync(place)

    def _guarded(self, do: Callable[..., object]) -> Callable[..., None]:
        """The tracer's own faults and its own use of torch are none of the program's."""

        def guarded(*arguments: Any) -> None:
            if getattr(self._inside, "yes", False) or self._pid != os.getpid():
                return
            with self._within(), self._timeline.own():
                do(*arguments)

        return guarded

    @contextmanager
    def _within(self) -> Iterator[None]:
        self._inside.yes = True
        try:
            with contained(self._problems, "", lambda: ("the tracer", None, "please report this")):
                yield
        finally:
            self._inside.yes = False

    def _place_of(self, frame: FrameType) -> Place | None:
        found = self.locator.find(frame)
        return found.place if found is not None else None

    def _line_of(self, path: str, line: int, function: str) -> Place | None:
        """A line, if it is the user's."""
        return self.locator.line(path, line, function) if self.locator.owner(path) is Owner.USER else None

    def _fail(self, part: str, message: str) -> None:
        self._problems.append(Problem(part, message))

    def _note_rank(self) -> None:
        """Remember the rank: at the end the process group may be gone."""
        distributed = sys.modules.get("torch.distributed")
        if self._rank is None and distributed is not None and distributed.is_available():
            if distributed.is_initialized():
                self._rank = distributed.get_rank(), distributed.get_world_size()

    # The trace.

    def _write(self, ended: str) -> None:
        rank, world = self._rank or _rank_of_environment()
        header = self._header(ended, rank, world)
        self.trace = Trace(header, tuple(self._records()))
        if not self.options.output or (self._is_child and not self.saw_anything):
            return
        suffix = f"rank{rank}" if world > 1 else f"child-{os.getpid()}" if self._is_child else ""
        path = output_of(self.options.output, suffix)
        if ended not in ("finished", "running") and not self.saw_anything and path.is_file():
            # A mistyped argument should not cost the trace of an earlier run.
            self.kept = path
            return
        try:
            write_trace(path, self.trace)
        except OSError as error:
            help = "name another file with `--output FILE`"
            raise TraceError(f"{path} cannot be written: {error.strerror or error}", help) from None
        self.written = path

    def become_child(self) -> None:
        """This process is one that the traced program started."""
        self._is_child = True

    def _header(self, ended: str, rank: int, world: int) -> Header:
        torch = sys.modules.get("torch")
        uses_cuda = torch is not None and torch.cuda.is_initialized()
        devices = range(torch.cuda.device_count()) if torch is not None and uses_cuda else ()
        return Header(
            perflint=__version__,
            python=platform.python_version(),
            torch=str(torch.__version__) if torch is not None else "",
            devices=tuple(torch.cuda.get_device_name(device) for device in devices) if torch is not None else (),
            program=self._program,
            root=str(self.locator.root),
            started=self._started,
            step_source=self._finder.source.name.lower() if self._finder.source else "",
            warmup=self.options.warmup,
            steps=self._recording.step,
            steps_per_window=self._recording.per_window,
            ended=ended,
            lines_recorded=self._lines.sees_all and not self._compilation.has_compiled,
            rank=rank,
            world_size=world,
            simulated=self.options.simulate,
            watched=self._is_armed or torch is None,
            children_seconds=_seconds_of_children(),
            line_steps=self._line_use.counted,
            call_steps=self._witnesses.call_steps,
        )

    def _records(self) -> Iterator[Record]:
        lines = self._line_use.records(self.locator)
        yield from self._step_records()
        yield from self._recording.syncs()
        yield from self._recording.copies()
        yield from self._recording.observations()
        if self._analysis is not None:
            yield from self._analysis.gaps
            yield from self._analysis.costs
            yield from self._analysis.kernels
            yield from self._analysis.activities
            yield from self._analysis.idles
        yield from self._modules.calls()
        yield from self._compilation.records(self.locator)
        yield from self._churn
        yield from self._peak.held
        yield from lines
        yield from self._experiments or ()
        for problem in self._problems:
            yield Failure(problem.path or "tracer", problem.message)
        yield from self.locator.sources()

    def _step_records(self) -> Iterator[Step]:
        """The steps; of those of the profiler the ones that it saw whole, as it saw them."""
        seen = {step.index: step for step in self._analysis.steps} if self._analysis else {}
        for step in self._recording.steps:
            if not step.profiled:
                yield step
            elif step.index in seen:
                yield seen[step.index]


def _rank_of_environment() -> tuple[int, int]:
    """The rank and the number of ranks that torchrun and its like set."""
    values = [os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE")]
    rank, world = (int(value) if value.isdecimal() else default for value, default in zip(values, (0, 1), strict=True))
    return rank, world


def _forked() -> None:
    """A forked process, such as a loader's worker, is not traced."""
    global _current
    if _current is not None:
        _current._lines.stop()
        _current = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@contextmanager
def trace(
    output: str | os.PathLike[str] | None = None,
    *,
    steps: int = 0,
    warmup: int = 0,
    window: int = 3,
    root: str | os.PathLike[str] = ".",
    experiments: bool = False,
) -> Iterator[Session]:
    """Record what a `with` block does to the GPU.

    `output` names the file to write; without it the trace is only in `Session.trace`. `steps` are
    recorded (0: all) after `warmup` others, `window` of them with the profiler. Steps are found as
    `perflint trace` finds them, unless `Session.step()` marks them. Places are relative to `root`.
    With `experiments`, changes to the model are timed when the last step has been recorded.
    Raises TraceError where the process is being traced already or the file cannot be written.
    """
    path = str(Path(output).absolute()) if output is not None else ""
    seconds = EXPERIMENT_SECONDS if experiments else 0.0
    session = Session(Options(path, str(Path(root).absolute()), steps, warmup, window, experiments=seconds))
    ended = "finished"
    session.start()
    try:
        import torch  # noqa: F401

        session.arm()
        yield session
    except BaseException as error:
        ended = type(error).__name__
        raise
    finally:
        session.finish(ended)


def _seconds_of_children() -> float:
    """The time that CPUs worked in processes that this one started and waited for; 0 if that is unknown."""
    if os.name == "nt":
        return 0.0
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

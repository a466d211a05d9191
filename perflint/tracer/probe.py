"""Times the steps of a program and keeps its losses and its state, for `perflint verify`.

Far less than a trace, so that nearly nothing is added to a step: two events on the GPU's queue and a
copy of the loss, none of which anybody waits for before the end. States are recorded outside of timed steps.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import multiprocessing
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from perflint.engine.crashes import contained
from perflint.findings import Problem
from perflint.frozen import dataclass
from perflint.tracer.importing import Redirect, when_imported
from perflint.tracer.look import Look
from perflint.tracer.replays import in_graph
from perflint.tracer.seeds import take_over
from perflint.tracer.states import States
from perflint.tracer.steps import StepFinder, StepSource
from perflint.tracer.timing import StepClock

VARIABLE = "PERFLINT_PROBE"
"""The environment variable that holds the options."""
MOST = 10_000
"""Losses, and steps whose times are kept."""
_LEAST = 30
"""Steps that are timed at least."""
_READ_EVERY = 256
"""Steps after which the times that are known by then are read, so that events do not pile up."""


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """The settings of the probe; paths are absolute."""

    output: str
    """The folder that each process writes a file to."""
    original: str
    """The project whose modules are to be found in `copy`."""
    copy: str
    shared: tuple[str, ...] = ()
    """Folders of the original that the copy only links to."""
    warmup: int = 10
    """Steps to let pass, at least one."""
    steps: int = 0
    """Steps to time, after which the program is ended; 0 for all."""
    seed: int | None = None
    """The seed for Python's, NumPy's and torch's generators at the start."""
    shift_seeds: bool = False
    """True if to seed them with something else where the program seeds them."""
    deterministic: bool = False
    """True if to choose kernels that give the same in each run."""
    looks: bool = False
    """True if to report the calls of the first steps, the waits for data and the use of the GPU."""
    seconds: float = 0.0
    """Seconds of timed steps after which fewer are enough, but at least 30; 0 for no such limit."""
    source: int = StepSource.OPTIMIZER
    """The least source of steps with which the program is ended: those of lesser ones may only prepare something."""
    patience: float = 0.0
    """Seconds after the timed steps in which an optimizer may still be made. A program without any is ended then,
    whatever its source of steps; 0 for never."""
    lists: bool = False
    """True if to report what was imported, for `tracer.forking`."""

    def to_json(self) -> str:
        """A text that `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ProbeOptions:
        """Read what `to_json` wrote."""
        values = json.loads(text)
        return cls(**values | {"shared": tuple(values["shared"])})


def start() -> None:
    """Watch this process as the environment says, once it imports torch, or not if it says nothing."""
    if not os.environ[VARIABLE]:
        return
    options = ProbeOptions.from_json(os.environ[VARIABLE])
    sys.meta_path.insert(0, Redirect(options.original, options.copy, options.shared))
    take_over(options.seed, options.shift_seeds)
    when_imported("torch", Probe(options).arm)


class Probe:
    """The report of one process."""

    def __init__(self, options: ProbeOptions) -> None:
        self._options = options
        self._finder = StepFinder(self._step_ended, self._restart)
        self._look = Look(options.copy, options.warmup) if options.looks else None
        self._environment = dict(os.environ)
        self._set: dict[str, str] = {}
        """The variables of the environment that were set before torch was imported."""
        self._clock = StepClock()
        self._step = 0
        self._began = self._timed_from = time.perf_counter()
        self._enough_since = 0.0
        self._is_training = False
        self._host: list[float] = []
        self._device: dict[int, float] = {}
        self._losses: list[tuple[int, Any]] = []
        self._results: list[tuple[int, Any]] = []
        self._scaled: tuple[Any, Any] | None = None
        self._problems: list[Problem] = []
        self._states = States(self._contained)
        self._stopped = False
        self._is_written = False
        self._pid = os.getpid()

    def arm(self) -> None:
        """torch has been imported."""
        self._set = dict(os.environ.items() - self._environment.items())
        with self._contained():
            if self._options.deterministic:
                _choose_deterministic_kernels()
            self._finder.start()
            self._watch_losses()
            self._states.watch()
            if self._look is not None:
                self._look.start()
                self._finder.on_result = self._note_result
        atexit.register(self._at_exit)

    def _step_ended(self) -> None:
        if os.getpid() != self._pid:
            return
        now = time.perf_counter()
        index = self._step - self._options.warmup
        with self._contained():
            if 0 <= index < (self._options.steps or MOST):
                self._clock.end(index)
                self._host.append((now - self._began) * 1000)
            self._step += 1
            if self._step == self._options.warmup and self._finder.source == StepSource.LOADER:
                self._finder.rest()
            if self._look is not None:
                self._look.step_ended(self._step)
            if self._step % _READ_EVERY == 0:
                self._device |= self._clock.passed()
        if self._is_enough(index + 1, now) and (
            self._finder.source >= self._options.source or self._trains_nothing(now)
        ):
            self._stop()
        with self._contained():
            if self._step >= self._options.warmup:
                self._clock.begin()
        self._began = time.perf_counter()

    def _is_enough(self, timed: int, now: float) -> bool:
        """True if the program is to end after so many timed steps."""
        steps, seconds = self._options.steps, self._options.seconds
        if timed == 0:
            self._timed_from = now
        is_long = timed >= _LEAST and 0 < seconds <= now - self._timed_from
        return steps > 0 and (timed >= steps or is_long)

    def _trains_nothing(self, now: float) -> bool:
        """True if there has been time to make an optimizer, and there is none."""
        self._enough_since = self._enough_since or now
        if not self._options.patience or self._is_training or now - self._enough_since < self._options.patience:
            return False
        from torch.optim import Optimizer

        # Looked for once: an optimizer that there is may make its first step much later.
        self._is_training = any(issubclass(type(each), Optimizer) for each in gc.get_objects())
        return not self._is_training

    def _restart(self) -> None:
        """A better source of steps: what was before belongs to its first step."""
        self._clock = StepClock()
        self._step = 0
        self._enough_since = 0.0
        self._host.clear()
        self._device.clear()
        self._losses = [(0, loss) for _, loss in self._losses]
        self._results.clear()
        if self._look is not None:
            self._look.restart()

    def _watch_losses(self) -> None:
        from torch import autograd
        from torch.amp import grad_scaler

        module: Any = autograd
        scaler_class: Any = grad_scaler.GradScaler
        backward, scale = module.backward, scaler_class.scale

        @functools.wraps(backward)
        def watched(tensors: Any, *arguments: Any, **keywords: Any) -> Any:
            with self._contained():
                self._note_losses(tensors)
            return backward(tensors, *arguments, **keywords)

        @functools.wraps(scale)
        def unscaled(scaler: Any, outputs: Any) -> Any:
            result = scale(scaler, outputs)
            if hasattr(outputs, "detach"):
                self._scaled = weakref.ref(result), outputs.detach()
            return result

        module.backward, scaler_class.scale = watched, unscaled

    def _note_losses(self, tensors: Any) -> None:
        """Keep what `backward` starts from, where it is: reading it would be a sync."""
        import torch

        if os.getpid() != self._pid or torch.compiler.is_compiling():
            return
        for tensor in (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors):
            if self._scaled is not None and self._scaled[0]() is tensor:
                tensor = self._scaled[1]
            if isinstance(tensor, torch.Tensor) and tensor.numel() == 1:
                keep = functools.partial(self._keep_loss, tensor.detach())
                if not in_graph(keep):
                    keep()

    def _note_result(self, result: Any) -> None:
        """Keep the size of what a model returns before steps are timed: without losses, it shows what is computed."""
        import torch
        from torch.utils._pytree import tree_flatten

        cuda: Any = torch.cuda
        if self._step >= self._options.warmup or os.getpid() != self._pid:
            return
        if cuda.is_initialized() and cuda.is_current_stream_capturing():
            return
        with self._contained(), torch.no_grad():
            tensors = [each for each in tree_flatten(result)[0] if isinstance(each, torch.Tensor)]
            found = next((each for each in tensors if each.is_floating_point()), None)
            if found is not None:
                self._results.append((self._step, found.detach().float().abs().mean()))

    def _keep_loss(self, loss: Any) -> None:
        if len(self._losses) < MOST:
            # A copy: what is there may be written over, by a graph's next replay for one.
            self._losses.append((self._step, loss.clone()))

    def _stop(self) -> None:
        """End the program: all is seen that was asked for."""
        is_first = not self._stopped
        self._stopped = True
        self._finish()
        if is_first and threading.current_thread() is threading.main_thread():
            raise SystemExit(0)
        # Another thread ends alone, and a program that catches the exception goes on.
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
        os._exit(0)

    def _at_exit(self) -> None:
        self._finish()
        if (self._stopped or hasattr(sys, "last_value")) and os.getpid() == self._pid:
            # They may wait for orders of a program that was ended or has failed, and Python waits for them.
            for child in multiprocessing.active_children():
                child.terminate()

    def _finish(self) -> None:
        if self._is_written or os.getpid() != self._pid or not (self._step or self._losses):
            return
        self._is_written = True
        seen = self._seen()
        path = os.path.join(self._options.output, f"{self._pid}.json")
        with open(f"{path}.tmp", "w", encoding="utf-8") as file:
            json.dump(seen, file)
        os.replace(f"{path}.tmp", path)

    def _seen(self) -> dict[str, Any]:
        import torch

        losses: list[tuple[int, float]] = []
        states: dict[str, Any] = {}
        # Before the states, which take memory.
        memory = _peak()
        with self._contained():
            self._device |= self._clock.passed(wait=True)
            losses = [(step, float(loss)) for step, loss in self._losses or self._results]
            states = self._states.recorded()
        cuda: Any = torch.cuda
        on_device = len(self._device) * 2 > len(self._host)
        return {
            "torch": str(torch.__version__),
            "device": cuda.get_device_name() if cuda.is_initialized() else "",
            "source": int(self._finder.source),
            "clock": "device" if on_device else "host",
            "times": [self._device[step] for step in sorted(self._device)] if on_device else self._host,
            "losses": losses,
            "memory": memory,
            "states": states,
            "rank": os.environ.get("RANK", "0"),
            "stopped": self._stopped,
            "problems": [problem.message for problem in self._problems],
            "look": self._look.report() if self._look is not None else None,
            "imported": self._imported() if self._options.lists else None,
        }

    def _imported(self) -> dict[str, Any]:
        """What an interpreter needs to make the imports of the program that are none of its project."""
        options = self._options
        return {
            "modules": _imported(options.copy),
            "environment": self._set,
            "project": [options.copy, options.original],
            "shared": list(options.shared),
        }

    @contextmanager
    def _contained(self) -> Iterator[None]:
        """The probe's own faults are none of the program's."""
        with contained(self._problems, "", lambda: ("the probe", None, "please report this")):
            yield


def _imported(copy: str) -> list[str]:
    """The modules that are none of the project's, in the order in which they were imported."""
    above = os.path.join(os.path.realpath(copy), "")
    origins = {name: getattr(getattr(each, "__spec__", None), "origin", None) for name, each in [*sys.modules.items()]}
    return [name for name, origin in origins.items() if origin and not os.path.realpath(origin).startswith(above)]


def _peak() -> int:
    """The most bytes that were in use: of the GPUs if there are any, else of the process; 0 if that is unknown."""
    import torch

    cuda: Any = torch.cuda
    if cuda.is_initialized():
        return sum(cuda.max_memory_allocated(device) for device in range(cuda.device_count()))
    if os.name == "nt":
        return 0
    import resource

    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024))


def _choose_deterministic_kernels() -> None:
    import torch

    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    # The program may set it later, and the fastest of several deterministic kernels differs from run to run.
    vars(type(torch.backends.cudnn))["benchmark"].setter = lambda _: None

"""Runs a program in a copy of its project, with the probe beside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean, median
from typing import IO, Any

import perflint
from perflint.config.errors import ConfigurationError
from perflint.frozen import dataclass, field, replace
from perflint.tracer.probe import VARIABLE, ProbeOptions
from perflint.verify.forked import GRACE, Forked, kill
from perflint.verify.states import States
from perflint.verify.workspace import Workspace

_HOOK = str(Path(perflint.__file__).parent / "tracer" / "hook")
_WORTH = 0.1
"""The share of a run that imports must take for runs to be forked: ten runs win what trying it costs."""
_READ = 1 << 24
"""Bytes of the end of an output that are read."""
_TOLD = 200
"""Lines of standard error that are kept."""
_INTERPRETER = r"(?:python|pypy)[\d.]*(?:\.exe)?"
_FLAGS = r"-[bBdEiIOPqRsSuvx]+"
"""Options of the interpreter without a value."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The probe's report of the process that makes the steps."""

    torch: str
    device: str
    """The name of the GPU; empty where none was used."""
    source: int
    """The source of the steps, as in `tracer.steps.StepSource`."""
    clock: str
    """The clock that measured: `device` or `host`."""
    times: tuple[float, ...]
    """Milliseconds of each step after warm-up."""
    losses: tuple[tuple[int, float], ...]
    """The value from which each `backward` started, and its step, from the start. Without any, the mean size of what
    models returned in the first steps, if the run looked."""
    stopped: bool
    """True if the probe ended the program after the steps that were asked for."""
    problems: tuple[str, ...]
    memory: int = 0
    """The most bytes that were in use, of the GPUs if there are any; 0 if that is unknown."""
    states: States = field(default_factory=States)
    """The parameters, their gradients, and the state of optimizers at the first steps and at the end."""
    look: Mapping[str, Any] | None = None
    """The report of `tracer.look`, if it was asked for."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the program."""

    status: int | None
    """Its exit status, negative for a signal; None where it took too long."""
    seconds: float
    out: str
    """Its standard output."""
    told: str
    """The end of its standard error."""
    seen: Seen | None
    """None where no step was seen."""

    @property
    def failed(self) -> bool:
        """True if it failed by itself."""
        return self.status != 0 and not (self.seen is not None and self.seen.stopped and self.status is not None)

    @property
    def ms(self) -> float | None:
        """The median of its steps, in milliseconds; None where none was timed."""
        return median(self.seen.times) if self.seen is not None and self.seen.times else None

    @property
    def mean_ms(self) -> float | None:
        """The mean of its steps, in milliseconds; None where none was timed."""
        return fmean(self.seen.times) if self.seen is not None and self.seen.times else None

    @property
    def whole_seconds(self) -> float | None:
        """The time from the start to the end of a program that was left to end by itself; None for others."""
        return None if self.seen is not None and self.seen.stopped else self.seconds

    @property
    def memory(self) -> float | None:
        """The most bytes that were in use; None if that is unknown."""
        return (self.seen.memory or None) if self.seen is not None else None


class Program:
    """The user's command, as it is run in a copy. Raises ConfigurationError for one that cannot be."""

    def __init__(self, command: Sequence[str], workspace: Workspace, options: ProbeOptions) -> None:
        self._workspace = workspace
        self._options = options
        words = runnable(command)
        self._command = [self._in_copy(word) for word in words]
        self._script = script_at(words)
        self._lists = words[self._script].endswith(".py") and self._script > 0 and hasattr(os, "fork")
        """True until a run has listed what the program imports."""
        self._first: tuple[Run, Mapping[str, Any]] | None = None
        """The run that has listed it, with the list, until the next run."""
        self._forked: Forked | None = None
        try:
            self._folder = workspace.place(os.curdir)
        except ValueError:
            raise ConfigurationError(
                f"the working directory is not in {workspace.root}", "start perflint in the project, or name its --root"
            ) from None

    def run(
        self,
        changes: Mapping[str, bytes],
        seconds: float | None = None,
        reseed: bool = False,
        deterministic: bool = False,
    ) -> Run:
        """Run it with some files changed, for so many seconds at most.

        `reseed` changes its seeds, `deterministic` its kernels. Raises OSError where it cannot be started.
        """
        first, self._first = self._first, None
        if first is not None:
            self._fork(*first)
        try:
            return self._one(changes, seconds, reseed, deterministic)
        except EOFError:
            self.close()
            return self._one(changes, seconds, reseed, deterministic)

    def follow(self, run: Run) -> None:
        """Have further runs end after the steps of a run of the original, by the same source of steps."""
        if self._options.steps and run.seen is not None and run.seen.times:
            steps = min(len(run.seen.times), self._options.steps)
            self._options = replace(self._options, steps=steps, seconds=0.0, source=run.seen.source)

    def close(self) -> None:
        """End what is kept for further runs."""
        if self._forked is not None:
            self._forked.close()
            self._forked = None

    def _one(self, changes: Mapping[str, bytes], seconds: float | None, reseed: bool, deterministic: bool) -> Run:
        self._workspace.renew(changes)
        output = self._workspace.output
        environment = self._environment(reseed, deterministic)
        with open(output / "stdout", "wb+") as out, open(output / "stderr", "wb+") as err:
            began = time.monotonic()
            if self._forked is None:
                status = self._started(environment, out, err, seconds)
            else:
                status = self._forked.run(self._command[self._script :], environment, out.name, err.name, seconds)
                began -= self._forked.seconds
            took = time.monotonic() - began
            lines = _text(err).splitlines()
            reports = _reports(output)
            run = Run(status, took, _text(out), "\n".join(lines[-_TOLD:]), _seen(reports))
            if self._lists and reports and not run.failed:
                self._lists, self._first = False, (run, _best(reports)["imported"])
            return run

    def _started(
        self, environment: dict[str, str], out: IO[bytes], err: IO[bytes], seconds: float | None
    ) -> int | None:
        """The exit status of the command; None if it did not end within `seconds`."""
        process = subprocess.Popen(
            self._command,
            cwd=self._folder,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.returncode is None:
                _end(process)
            kill(process.pid, signal.SIGKILL)

    def _fork(self, first: Run, imported: Mapping[str, Any]) -> None:
        """Have further runs forked if the original runs so, as it ran first, and its imports take long."""
        environment = os.environ | self._environment(False, False)
        try:
            self._workspace.renew({})
            interpreter, limit = self._command[: self._script], first.seconds + GRACE
            self._forked = Forked(interpreter, self._folder, environment, imported, limit)
            if not self._forked.reason and self._forked.seconds >= first.seconds * _WORTH:
                again = self._one({}, limit, False, False)
                if not again.failed and self._randomness(again) == self._randomness(first):
                    return
        except EOFError:
            # A module ends the interpreter that imports it.
            pass
        self.close()

    def _randomness(self, run: Run) -> Mapping[str, str] | None:
        """The state of random numbers at the first step of the optimizer, if it is to be the same in each run."""
        return run.seen.states.random_start if run.seen is not None and self._options.seed is not None else None

    def _in_copy(self, word: str) -> str:
        """A word of the command; a full path of the project becomes one of the copy."""
        for root in {str(self._workspace.root), os.path.abspath(self._workspace.root)}:
            name, equals, value = word.rpartition("=")
            if value == root or value.startswith(root + os.sep):
                return name + equals + str(self._workspace.folder) + value[len(root) :]
        return word

    def _environment(self, reseed: bool, deterministic: bool) -> dict[str, str]:
        known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        added = {
            VARIABLE: replace(
                self._options, shift_seeds=reseed, deterministic=deterministic, lists=self._lists
            ).to_json(),
            "PYTHONPATH": os.pathsep.join([_HOOK, *(self._in_copy(path) for path in known if path)]),
            # It would install the copy into the environment.
            "UV_NO_SYNC": "1",
        }
        if deterministic:
            added["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        if self._options.seed is not None:
            added["PYTHONHASHSEED"] = str(self._options.seed % 2**32)
        return added


def runnable(command: Sequence[str]) -> list[str]:
    """The command, with an interpreter in front of a script that cannot be run by itself.

    Raises ConfigurationError if it names a program that does not exist or may not be run.
    """
    first = command[0]
    if script := script_at(command):
        _require_file(command[script])
    if not os.path.dirname(first) and not os.path.exists(first):
        if shutil.which(first) is None:
            raise ConfigurationError(
                f"there is no command `{first}`", "for example: perflint verify -- python train.py"
            )
        return list(command)
    _require_file(first)
    may_run = os.access(first, os.X_OK)
    if os.path.isdir(first) or (first.endswith((".py", ".pyz")) and not may_run):
        return [sys.executable, *command]
    if not may_run:
        raise ConfigurationError(f"{first} is not executable", f"`chmod +x {first}`, or name its interpreter")
    return [first if os.path.dirname(first) else os.path.join(os.curdir, first), *command[1:]]


def script_at(command: Sequence[str]) -> int:
    """The place of the script in a command of the interpreter; 0 in other commands, and after options with a value."""
    if not re.fullmatch(_INTERPRETER, os.path.basename(command[0])):
        return 0
    place = next((place for place, word in enumerate(command) if place and not re.fullmatch(_FLAGS, word)), 0)
    return 0 if command[place].startswith("-") else place


def _require_file(path: str) -> None:
    if not os.path.exists(path):
        raise ConfigurationError(f"there is no file {path}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it started."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    kill(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _text(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size - _READ, 0))
    return stream.read().decode("utf-8", "replace")


def _reports(folder: Path) -> list[dict[str, Any]]:
    """The reports of the probe, one for each process."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]


def _best(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """The report of the process with the best source of steps; of several, the most steps, then rank 0."""
    return max(reports, key=lambda one: (one["source"], len(one["losses"]), len(one["times"]), one["rank"] == "0"))


def _seen(reports: list[dict[str, Any]]) -> Seen | None:
    if not reports:
        return None
    best = _best(reports)
    return Seen(
        torch=best["torch"],
        device=best["device"],
        source=best["source"],
        clock=best["clock"],
        times=tuple(best["times"]),
        losses=tuple((step, loss) for step, loss in best["losses"]),
        stopped=any(one["stopped"] for one in reports),
        problems=_all(one["problems"] for one in reports),
        memory=best["memory"],
        states=States.from_json(best["states"]),
        look=best["look"],
    )


def _all(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for items in lists for item in items))

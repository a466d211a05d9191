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
from perflint.verify.states import States
from perflint.verify.workspace import Workspace

_HOOK = str(Path(perflint.__file__).parent / "tracer" / "hook")
_GRACE = 5.0
"""Seconds that a program has to end once it is asked to."""
_READ = 1 << 24
"""Bytes of the end of an output that are read."""
_TOLD = 20
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
    """The value from which each `backward` started, and its step, from the start."""
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
        self._command = [self._in_copy(word) for word in runnable(command)]
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
        self._workspace.renew(changes)
        output = self._workspace.output
        with open(output / "stdout", "wb+") as out, open(output / "stderr", "wb+") as err:
            status: int | None = None
            began = time.monotonic()
            process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._environment(reseed, deterministic),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                _end(process)
            except BaseException:
                _end(process)
                raise
            took = time.monotonic() - began
            _kill_group(process)
            lines = _text(err).splitlines()
            return Run(status, took, _text(out), "\n".join(lines[-_TOLD:]), _read_seen(output))

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
            VARIABLE: replace(self._options, shift_seeds=reseed, deterministic=deterministic).to_json(),
            "PYTHONPATH": os.pathsep.join([_HOOK, *(self._in_copy(path) for path in known if path)]),
            # It would install the copy into the environment.
            "UV_NO_SYNC": "1",
        }
        if deterministic:
            added["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        if self._options.seed is not None:
            added["PYTHONHASHSEED"] = str(self._options.seed % 2**32)
        return os.environ | added


def runnable(command: Sequence[str]) -> list[str]:
    """The command, with an interpreter in front of a script that cannot be run by itself.

    Raises ConfigurationError if it names a program that does not exist or may not be run.
    """
    first = command[0]
    script = _script(command)
    if script is not None:
        _require_file(script)
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


def _script(command: Sequence[str]) -> str | None:
    """The script in a command of the Python interpreter; None for other commands, and after options with a value."""
    if not re.fullmatch(_INTERPRETER, os.path.basename(command[0])):
        return None
    word = next((word for word in command[1:] if not re.fullmatch(_FLAGS, word)), "-")
    return None if word.startswith("-") else word


def _require_file(path: str) -> None:
    if not os.path.exists(path):
        raise ConfigurationError(f"there is no file {path}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it started."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    _kill_group(process)
    process.kill()
    process.wait()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End what a program has started and left behind, which would take time from the next run."""
    if hasattr(os, "killpg"):  # pragma: no branch - Windows has no groups
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _text(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size - _READ, 0))
    return stream.read().decode("utf-8", "replace")


def _read_seen(folder: Path) -> Seen | None:
    """The report of the process with the best source of steps; of several, the most steps, then rank 0."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
    if not found:
        return None
    best = max(found, key=lambda one: (one["source"], len(one["losses"]), len(one["times"]), one["rank"] == "0"))
    return Seen(
        torch=best["torch"],
        device=best["device"],
        source=best["source"],
        clock=best["clock"],
        times=tuple(best["times"]),
        losses=tuple((step, loss) for step, loss in best["losses"]),
        stopped=any(one["stopped"] for one in found),
        problems=_all(one["problems"] for one in found),
        memory=best["memory"],
        states=States.from_json(best["states"]),
        look=best["look"],
    )


def _all(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for items in lists for item in items))

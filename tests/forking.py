"""Processes that have imported what tests run, and fork a child for each command.

The children share nothing but what was imported: each has its own modules, its own exit handlers and its own streams.
Tests of the start, of imports and of exits start Python anew, with `python` of `tests.tracer.device` or
`tests.cli.command`.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS = 300
"""The time after which a child is ended."""


@dataclass(frozen=True, slots=True)
class Done:
    """A process that has ended."""

    code: int
    out: str
    err: str


def environment(**given: str) -> dict[str, str]:
    """The environment of a command: that of the tests, without their wish for colors, and with some variables."""
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    return kept | {"PYTHONPATH": str(ROOT)} | given


class Server:
    """The process that runs a module of the tests, which calls `serve`."""

    def __init__(self, module: str) -> None:
        self._streams = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, folder: Path, *request: str, variables: Mapping[str, str] | None = None) -> Done:
        """The end of a child in a folder; `variables` are its environment if it is another."""
        assert self._process.stdin is not None and self._process.stdout is not None
        out, err = (Path(self._streams.name) / name for name in ("out", "err"))
        self._process.stdin.write(json.dumps([str(folder), [str(out), str(err)], variables, request]) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        return Done(code, out.read_text("utf-8", "replace"), err.read_text("utf-8", "replace"))

    def close(self) -> None:
        """End the process."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._streams.cleanup()


@cache
def server(module: str) -> Server:
    """The server of a module, which ends with this process."""
    made = Server(module)
    atexit.register(made.close)
    return made


def serve(run: Callable[[list[str]], None]) -> None:
    """Run each request of the standard input in a child."""
    # Else each child would look for garbage among all imported objects when it ends, and copy their pages.
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            folder, streams, variables, request = json.loads(line)
            signal.alarm(SECONDS)
            _move(folder, *streams)
            if variables is not None:
                os.environ.clear()
                os.environ.update(variables)
                sys.path[1:1] = variables["PYTHONPATH"].split(os.pathsep)
            run(request)
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _move(folder: str, *streams: str) -> None:
    """Be in a folder, with new streams, as if Python had been started there."""
    for number, path in enumerate((os.devnull, *streams)):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    # `python -m` puts the working directory there, `python program.py` that of the program.
    sys.path[0] = folder

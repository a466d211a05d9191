"""A process that has imported torch. It forks a child for each program, which is traced there.

A small program runs for a tenth of the time that the import takes. The children share nothing but what was imported:
each has its own modules, its own exit handlers and its own trace. The imports of this process come before the tracer,
so tests of the import itself, of exits and of environments start Python anew (`tests.tracer.device.python`).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from functools import cache
from pathlib import Path

from perflint.cli import launch
from perflint.cli import trace as command
from perflint.tracer.witnesses.watching import witness_classes
from tests.tracer.device import ROOT, Done, python

SECONDS = 300
"""The time after which a child is ended."""
_IMPORTED = ("torch", "torch._dynamo", "perflint.tracer.simulation.dispatch")


def trace(folder: Path, *arguments: str) -> Done:
    """What `perflint trace` with some arguments does in a folder."""
    if not hasattr(os, "fork"):
        return python(folder, "-m", "perflint", "trace", *arguments)
    return _server().run(folder, "trace", arguments)


def script(folder: Path, *arguments: str) -> Done:
    """The end of a script with some arguments, without the tracer."""
    if not hasattr(os, "fork"):
        return python(folder, *arguments)
    return _server().run(folder, "script", arguments)


class _Server:
    """The process, seen from the tests."""

    def __init__(self) -> None:
        kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
        self._streams = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            env=kept | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, folder: Path, kind: str, arguments: tuple[str, ...]) -> Done:
        """The end of a child."""
        assert self._process.stdin is not None and self._process.stdout is not None
        out, err = (Path(self._streams.name) / name for name in ("out", "err"))
        self._process.stdin.write(json.dumps([kind, str(folder), str(out), str(err), *arguments]) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        return Done(code, out.read_text(), err.read_text())

    def close(self) -> None:
        """End the process."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._streams.cleanup()


@cache
def _server() -> _Server:
    server = _Server()
    atexit.register(server.close)
    return server


def _serve() -> None:
    """Run each line of the standard input in a child: a kind, a folder, files for two streams, and the arguments."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            kind, folder, out, err, *arguments = json.loads(line)
            signal.alarm(SECONDS)
            _move(folder, out, err)
            _trace(arguments) if kind == "trace" else _run(arguments)
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


def _trace(arguments: list[str]) -> None:
    parser = ArgumentParser(allow_abbrev=False)
    command.add_arguments(parser)
    sys.argv[1:] = command.launch_arguments(parser.parse_args(arguments))
    launch.main()


def _run(arguments: list[str]) -> None:
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    for name in _IMPORTED:
        importlib.import_module(name)
    witness_classes()
    # Else each child would look for garbage among all objects of torch when it ends, and copy their pages.
    gc.freeze()
    _serve()

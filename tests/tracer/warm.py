"""A process that has imported torch. It forks a child for each program, which is traced there.

A small program runs for a tenth of the time that the import takes. The children share nothing but what was imported:
each has its own modules, its own exit handlers and its own trace. The imports of this process come before the tracer,
so tests of the import itself, of exits and of environments start Python anew (`tests.tracer.device.python`).
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from functools import cache
from pathlib import Path

from tests.tracer.device import ROOT, Done, python

SECONDS = 120
"""The time after which a child is ended."""
_IMPORTED = ("torch", "torch._dynamo", "perflint.cli.launch", "perflint.tracer.simulation.dispatch")


def trace(folder: Path, *arguments: str) -> Done:
    """What `perflint trace` with some arguments does in a folder."""
    if not hasattr(os, "fork"):
        return python(folder, "-m", "perflint", "trace", *arguments)
    return _server().run(folder, arguments)


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

    def run(self, folder: Path, arguments: tuple[str, ...]) -> Done:
        """The end of a child."""
        assert self._process.stdin is not None and self._process.stdout is not None
        out, err = (Path(self._streams.name) / name for name in ("out", "err"))
        self._process.stdin.write(json.dumps([str(folder), str(out), str(err), arguments]) + "\n")
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


def _serve() -> bool:
    """Fork a child for each line of the standard input. True in a child, which is set up for its program."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _become(*json.loads(line))
            return True
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return False


def _become(folder: str, out: str, err: str, arguments: list[str]) -> None:
    import signal

    from perflint.cli import trace

    signal.alarm(SECONDS)
    for number, path in enumerate((os.devnull, out, err)):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    parser = ArgumentParser(allow_abbrev=False)
    trace.add_arguments(parser)
    sys.argv[1:] = trace.launch_arguments(parser.parse_args(arguments))
    # `python -m` puts the working directory there.
    sys.path[0] = folder


if __name__ == "__main__":
    for name in _IMPORTED:
        importlib.import_module(name)
    if _serve():
        from perflint.cli.launch import main

        main()

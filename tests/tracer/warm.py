"""A process that has imported torch. It forks a child for each program, which is traced there.

A small program runs for a tenth of the time that the import takes. The imports of this process come before the tracer,
so tests of the import itself start Python anew.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from argparse import ArgumentParser
from pathlib import Path

from perflint.cli import launch
from perflint.cli import trace as command
from perflint.tracer.witnesses.watching import witness_classes
from tests.forking import Done, serve, server
from tests.tracer.device import python

_IMPORTED = ("torch", "torch._dynamo", "perflint.tracer.simulation.dispatch")


def trace(folder: Path, *arguments: str) -> Done:
    """What `perflint trace` with some arguments does in a folder."""
    if not hasattr(os, "fork"):
        return python(folder, "-m", "perflint", "trace", *arguments)
    return server(__name__).run(folder, "trace", *arguments)


def script(folder: Path, *arguments: str) -> Done:
    """The end of a script with some arguments, without the tracer."""
    if not hasattr(os, "fork"):
        return python(folder, *arguments)
    return server(__name__).run(folder, "script", *arguments)


def _run(request: list[str]) -> None:
    kind, *arguments = request
    if kind == "script":
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
        return
    parser = ArgumentParser(allow_abbrev=False)
    command.add_arguments(parser)
    sys.argv[1:] = command.launch_arguments(parser.parse_args(arguments))
    launch.main()


if __name__ == "__main__":
    for name in _IMPORTED:
        importlib.import_module(name)
    witness_classes()
    serve(_run)

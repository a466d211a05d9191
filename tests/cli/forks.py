"""A process that has imported the rules. It forks a child for each command, which is perflint's."""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from pathlib import Path

from tests.cli.command import Ran, python
from tests.forking import environment, serve, server

_IMPORTED = ("perflint.cli.check", "perflint.cli.explain", "perflint.cli.fix", "perflint.cli.rules", "libcst")


def perflint(folder: Path, *arguments: str, **given: str) -> Ran:
    """What perflint does with some arguments in a folder, with some variables of the environment."""
    if not hasattr(os, "fork"):
        return python("-m", "perflint", *arguments, cwd=folder, **given)
    done = server(__name__).run(folder, *arguments, variables=environment(**given))
    return Ran(done.code, done.out, done.err)


def _run(request: list[str]) -> None:
    sys.argv = ["perflint", *request]
    runpy.run_module("perflint", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for name in _IMPORTED:
        importlib.import_module(name)
    importlib.import_module("perflint.rules.registry").all_rules()
    serve(_run)

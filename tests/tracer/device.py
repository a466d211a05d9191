"""A library that synchronises as torch's own code does: it warns, below the user's code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from perflint.tracer.file import read_trace
from perflint.tracer.trace import Trace
from tests.forking import Done
from tests.forking import environment as inherited

ROOT = Path(__file__).parents[2]
DEVICE = """
import warnings

def sync():
    warnings.warn("called a synchronizing CUDA operation (Triggered internally)")

class Module:
    def to(self):
        sync()
"""
WITHOUT_COMPILER = (
    "import sys, types, torch; torch._dynamo = sys.modules['torch._dynamo'] = "
    "types.SimpleNamespace(disable=lambda function, *_, **__: function, graph_break=lambda: None)\n"
)
"""The first line of a program whose optimizers do not import torch's compiler, which takes as long as torch itself."""
HEAD = "import sys\nsys.path.append('site-packages')\nimport device\n"
"""Three lines in front of each program."""


def python(folder: Path, *arguments: str, executable: str = sys.executable, **environment: str) -> Done:
    """Run the interpreter in a folder."""
    done = subprocess.run(
        [executable, *arguments],
        cwd=folder,
        env=inherited(**environment),
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def written(folder: Path, program: str) -> None:
    """Write a program with its library."""
    (folder / "site-packages").mkdir(exist_ok=True)
    (folder / "site-packages" / "device.py").write_text(DEVICE)
    (folder / "program.py").write_text(HEAD + program)


def traced(folder: Path, program: str, *arguments: str, options: tuple[str, ...] = ()) -> tuple[Trace, Done]:
    """Trace a program from its start; the trace, and the finished process."""
    written(folder, program)
    command = ["-m", "perflint", "trace", "--warmup", "0", "--steps", "0", *options, "program.py", *arguments]
    done = python(folder, *command)
    return read_trace(folder / "perflint-trace.jsonl.gz"), done

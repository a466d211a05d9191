"""Runs programs one after the other in processes that have imported torch already: jobs come as lines of JSON.

The import of torch takes longer than the steps of most programs. Each program runs in a process of its own, forked
before CUDA is used, with the probe of `perflint verify` beside it, which times the steps and keeps the losses.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

IMPORTED = (
    "numpy PIL.Image torch torchvision torch.utils.tensorboard torch._dynamo torch._inductor.compile_fx",
    "numpy PIL.Image torch torchvision",
    "numpy PIL.Image",
)
"""Modules that are imported once, if they are installed; fewer if some use CUDA when they are imported."""
LEVEL = "PROGRAMS_LEVEL"


def main() -> None:
    """Serve until the input ends."""
    cpus = os.environ.get("PROGRAMS_CPUS", "")
    if cpus:
        os.sched_setaffinity(0, {int(each) for each in cpus.split(",")})
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    level = int(os.environ.get(LEVEL, "0"))
    for name in IMPORTED[level].split():
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"not imported: {error}", file=sys.stderr)
    if level + 1 < len(IMPORTED) and not _can_fork():
        os.environ[LEVEL] = str(level + 1)
        os.dup2(answers.fileno(), 1)
        os.execv(sys.executable, [sys.executable, __file__])
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        print(json.dumps(_served(json.loads(line))), file=answers)


def _can_fork() -> bool:
    """True if a forked process can use CUDA, or there is none."""
    child = os.fork()
    if not child:
        try:
            import torch

            if torch.cuda.is_available():
                torch.zeros(1, device="cuda").sum().item()
            elif torch.cuda._is_in_bad_fork():
                os._exit(1)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _served(job: dict[str, Any]) -> dict[str, Any]:
    """The exit status of a program, None if it took too long, and its seconds."""
    began = time.monotonic()
    child = os.fork()
    if not child:
        _become(job)
    status = None
    while time.monotonic() - began < job["timeout"]:
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            status = os.waitstatus_to_exitcode(code)
            break
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    return {"status": status, "seconds": round(time.monotonic() - began, 2)}


def _become(job: dict[str, Any]) -> None:
    """Run the program, and never return."""
    os.setsid()
    output = Path(job["output"])
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(output / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    sys.path[:0] = [job["folder"], *job["paths"]]
    sys.argv = [job["script"], *job["arguments"]]
    try:
        _watch(job)
        runpy.run_path(job["script"], run_name="__main__")
    except SystemExit as end:
        # Here, while the frames of the program live: when they go, its loaders wait seconds for each of their workers.
        _end(end.code if isinstance(end.code, int) else int(end.code is not None))
    except BaseException:
        traceback.print_exc()
        _end(1)
    _end(0)


def _end(status: int) -> None:
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _watch(job: dict[str, Any]) -> None:
    from perflint.tracer.probe import Probe, ProbeOptions
    from perflint.tracer.seeds import take_over

    folder = job["folder"]
    options = ProbeOptions(job["output"], folder, folder, (), job["warmup"], job["steps"], job["seed"])
    take_over(options.seed, shift=False)
    Probe(options).arm()


if __name__ == "__main__":
    # The root of perflint, last: programs have modules of many names.
    sys.path[:] = [path for path in sys.path[1:] if path] + [str(Path(__file__).parents[2])]
    main()

"""An interpreter that has imported what a program imports. It forks a process for each run of the program.

Is run by its path, as `python forking.py`, by the program's interpreter, which need not have perflint. It reads
lines of JSON from standard input: first the modules and the environment, then a run each. It answers on
standard output.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import threading
import time
import warnings
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

_CHECK = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""Has `torch.cuda.is_available` ask the driver in a way that a forked process can still use the GPU."""


def serve() -> dict[str, Any]:
    """Answer requests until there are no more. Return the request in a process that is to run the program."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w", buffering=1)
    for descriptor, way in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        os.dup2(os.open(os.devnull, way), descriptor)
    answers.write(json.dumps(_prepared(**json.loads(requests.readline()))) + "\n")
    for line in requests:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            # Libraries for linear algebra have threads, which they stop and start around a fork.
            process = os.fork()
        # Both do it, since either may be the first.
        os.setpgid(process, process)
        if not process:
            requests.close()
            answers.close()
            request: dict[str, Any] = json.loads(line)
            return request
        answers.write(f"{process}\n")
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])}\n")
    sys.exit(0)


def _prepared(modules: list[str], environment: dict[str, str], project: list[str], shared: list[str]) -> dict[str, Any]:
    """Import modules: the seconds that it took, and why a fork would not be what a start is, or an empty text."""
    began = time.perf_counter()
    own = os.environ.get(_CHECK)
    os.environ[_CHECK] = "1"
    for name in modules:
        # The program imports itself what cannot be imported here.
        with suppress(Exception):
            importlib.import_module(name)
    del os.environ[_CHECK]
    os.environ |= {} if own is None else {_CHECK: own}
    torch: Any = sys.modules.get("torch")
    if threading.active_count() > 1:
        reason = "a module starts a thread"
    elif torch is None or torch.cuda.is_initialized():
        reason = "a module uses the GPU"
    elif any(os.environ.get(name) != value for name, value in environment.items()):
        reason = "the program changes its environment before it imports torch"
    elif any(_is_below(file, project) and not _is_below(file, shared) for file in _files()):
        # A change of the module would not be seen.
        reason = "a package imports a module of the project"
    else:
        reason = ""
        parts = (torch.nn.Module, torch.optim.Optimizer)
        if not any(issubclass(type(each), parts) for each in gc.get_objects()):
            # Else each run would look for garbage among all that is imported when it ends, which takes a second.
            # The probe does not see frozen models.
            gc.freeze()
    return {"seconds": time.perf_counter() - began, "reason": reason}


def _files() -> list[str]:
    """The files of the modules, but for the main one."""
    specs = (getattr(module, "__spec__", None) for module in [*sys.modules.values()])
    return [os.path.realpath(spec.origin) for spec in specs if spec is not None and spec.has_location]


def _is_below(path: str, folders: list[str]) -> bool:
    return any(path.startswith(os.path.join(os.path.realpath(folder), "")) for folder in folders)


def become(command: list[str], folder: str, environment: dict[str, str], out: str, err: str) -> None:
    """Be a process that Python started with a command."""
    for path, descriptor in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), descriptor)
    os.environ |= environment
    os.chdir(folder)
    sys.argv[:] = command
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(command[0])))
    importlib.import_module("perflint.tracer.probe").start()


def main() -> None:
    """Serve, and run the program in each child as the main module."""
    if not sys.flags.safe_path:
        sys.path.pop(0)
    request = serve()
    become(**request)
    script = os.path.join(os.getcwd(), sys.argv[0])
    loader = SourceFileLoader("__main__", script)
    module = sys.modules["__main__"] = ModuleType("__main__")
    vars(module).update(__file__=script, __loader__=loader, __builtins__=__builtins__, __cached__=None)
    exec(loader.source_to_code(loader.get_data(script), script), vars(module))


if __name__ == "__main__":
    main()

"""Run a program and record the waits and the GPU work of its lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from argparse import REMAINDER, ArgumentParser, ArgumentTypeError, Namespace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from perflint.cli import options as shared
from perflint.config.errors import ConfigurationError
from perflint.config.outside import settings_of
from perflint.tracer.options import DEFAULT_OUTPUT, EXPERIMENT_SECONDS, Options

OLDEST_SIMULATED = (2, 6)
"""The first torch whose parts `--simulate` knows."""
_EXIT_CODES = (
    "Exit codes: those of the program; 1 where it succeeded and --fail-on-sync found a sync, or a function waited "
    "that is marked perflint.sync_free or listed under sync-free-functions; "
    "2 for a fault in the usage. Everything after SCRIPT or MODULE is the program's."
)


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint trace`."""
    parser.usage = "perflint trace [options] SCRIPT [ARGUMENTS]\n       perflint trace [options] -m MODULE [ARGUMENTS]"
    parser.epilog = _EXIT_CODES
    defaults = Options("", "")
    parser.add_argument("program", nargs=REMAINDER, metavar="SCRIPT ARGUMENTS")
    parser.add_argument("-m", nargs=REMAINDER, dest="module", metavar="MODULE ARGUMENTS")
    group = parser.add_argument_group("what to record")
    group.add_argument(
        "--steps",
        type=_count,
        default=defaults.steps,
        metavar="N",
        help="steps after warm-up; 0 for all (default: %(default)s)",
    )
    group.add_argument(
        "--warmup",
        type=_count,
        default=defaults.warmup,
        metavar="N",
        help="steps to let pass; 0 to record from the start (default: %(default)s)",
    )
    group.add_argument("--window", type=_count, default=defaults.window, metavar="N")
    group.add_argument("--own", action="append", default=[], metavar="PATH")
    group.add_argument("--simulate", action="store_true")
    group = parser.add_argument_group("experiments")
    group.add_argument(
        "--experiments",
        action="store_true",
        help="when the steps have been recorded, time changes to layers, model and optimizer, on copies of them",
    )
    group.add_argument("--experiment-time", type=_count, default=int(EXPERIMENT_SECONDS), metavar="SECONDS")
    group = parser.add_argument_group("output")
    group.add_argument("--output", "-o", default=DEFAULT_OUTPUT, metavar="FILE", help="(default: %(default)s)")
    group.add_argument("--fail-on-sync", action="store_true")
    shared.add_colour(group)


def run(arguments: Namespace) -> int:
    """Become the program, with the tracer beside it. Raises ConfigurationError for faults in the usage."""
    # A process of its own: nothing of this one, such as its settings of streams and collector, is the program's.
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    file = os.path.join(os.path.dirname(__file__), "launch.py")
    launch = [sys.executable, *flags, file, *launch_arguments(arguments)]
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":
        os.execv(sys.executable, launch)
    return subprocess.run(launch).returncode


def launch_arguments(arguments: Namespace) -> list[str]:
    """The arguments of `perflint.cli.launch` for a command line. Raises ConfigurationError for faults in the usage."""
    program = arguments.program
    if arguments.module is not None:
        # argparse ends the arguments of an option at `--`.
        program = [*arguments.module, *program]
    elif program[:1] == ["--"]:
        program = program[1:]
    if not program:
        raise ConfigurationError("there is no program to trace", "perflint trace SCRIPT, or perflint trace -m MODULE")
    if arguments.simulate and arguments.experiments:
        raise ConfigurationError("--experiments takes times, which --simulate has none of", "leave out one of the two")
    _check(arguments, program[0])
    if arguments.simulate and _version_of_torch() < OLDEST_SIMULATED:
        wanted = ".".join(map(str, OLDEST_SIMULATED))
        raise ConfigurationError(f"--simulate needs torch {wanted} or later", "trace on a GPU, or with a newer torch")
    options = Options(
        output=os.path.abspath(arguments.output),
        root=os.getcwd(),
        steps=arguments.steps,
        warmup=arguments.warmup,
        window=arguments.window,
        own=tuple(os.path.abspath(path) for path in arguments.own),
        fail_on_sync=arguments.fail_on_sync,
        sync_free=settings_of(program[0] if arguments.module is None else ".").sync_free_functions,
        experiments=float(arguments.experiment_time) if arguments.experiments else 0.0,
        simulate=arguments.simulate,
    )
    kind = "script" if arguments.module is None else "module"
    return [options.to_json(), arguments.color, kind, *program]


def _check(arguments: Namespace, program: str) -> None:
    """Raise ConfigurationError for what cannot be run or written."""
    if find_spec("torch") is None:
        raise ConfigurationError("the tracer needs torch", "install torch beside perflint: pip install torch")
    if arguments.module is None and not os.path.exists(program):
        raise ConfigurationError(f"there is no file {program}", "`-m MODULE` runs a module")
    folder = Path(arguments.output).absolute().parent
    if not folder.is_dir():
        raise ConfigurationError(f"there is no folder {folder} to write to", "create it, or name another `--output`")


def _version_of_torch() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version("torch"))
    return (int(found[1]), int(found[2])) if found else OLDEST_SIMULATED


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise ArgumentTypeError(f"`{text}` is not a whole number")
    return int(text)

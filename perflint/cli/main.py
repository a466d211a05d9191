"""The `perflint` command: finds the verb, and sees to it that every end is a proper one."""

from __future__ import annotations

import os
import sys

from perflint import __version__
from perflint.cli import streams

# typing takes longer to import than --version to answer.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

VERBS = {
    "check": "find what slows PyTorch code down",
    "ci": "check in a job, with output for the service that runs it",
    "fix": "fix findings; prints a diff unless asked to write",
    "baseline": "write the known findings to a file, so that a check shows only new ones",
    "merge": "join the reports of the parts of a run",
    "init": "look at the project once, and write settings that fit it",
    "explain": "explain the values of a line, its heat and the decisions of rules",
    "config": "show the settings in force and where each comes from, or explain one",
    "rule": "print the page of a rule",
    "rules": "list all rules",
    "trace": "run a program and record the waits and the GPU work of its lines",
    "report": "show traces, as a page or for a trace viewer",
    "compare": "compare two traces: the step, its idle time, the lines that wait",
    "lsp": "run the language server (LSP)",
    "mcp": "serve a coding agent, in the Model Context Protocol",
    "clean": "remove what the cache has about this project",
    "completion": "print the code that completes commands and options in a shell",
    "tune": "make a program faster: try changes in its own loop, and keep those that pay",
    "verify": "run a program with and without fixes, and keep the good ones",
}
"""The verbs, which are modules of this package, and what each does."""

_DESCRIPTION = "perflint finds and fixes what slows PyTorch code down on GPUs."
_EXIT_CODES = "Exit codes: 0 nothing found, 1 findings, 2 a fault in the usage, the settings, a file or perflint."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code; argparse exits by itself on faults of usage (2) and --help (0)."""
    try:
        if argv is None:
            streams.prepare()
            sys.unraisablehook = _unraisable
        try:
            code = _run(sys.argv[1:] if argv is None else list(argv))
        except SystemExit:
            sys.stdout.flush()
            raise
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        streams.discard()
        return 130
    except BrokenPipeError:
        # The reader of the output has gone.
        streams.discard()
        return 141
    except OSError as error:
        return _failed(error)


def _failed(error: OSError) -> int:
    """Say that standard output is full or closed, or that the working directory was removed."""
    streams.discard()
    if os.environ.get("PERFLINT_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    reason = error.strerror or str(error)
    if error.filename is not None:
        _say(f"{error.filename}: {reason}", None)
    elif isinstance(error, FileNotFoundError):
        _say("the working directory was removed", "change into a folder that exists")
    else:
        _say(f"standard output cannot be written: {reason}", None)
    return 2


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """End where Python passes over an interrupt, as in callbacks of weak references, which imports use."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        os._exit(130)
    sys.__unraisablehook__(unraisable)


def _run(arguments: list[str]) -> int:
    if arguments[:1] in (["--version"], ["-V"]):
        print(f"perflint {__version__}")
        return 0
    if not arguments or arguments[0] in ("-h", "--help"):
        _overview().print_help(sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    verb, *rest = arguments
    if verb == "version":
        print(f"perflint {__version__}")
        return 0
    if verb == "help":
        return _run([*rest[:1], "--help"])
    if verb == "fix" and "--verify" in _before_command(rest):
        rest.remove("--verify")
        verb = "verify"
    if verb not in VERBS:
        return _unknown(verb, rest)
    return _run_verb(verb, rest)


def _run_verb(verb: str, rest: list[str]) -> int:
    import importlib

    from perflint.cli.usage import Parser
    from perflint.config.errors import ConfigurationError
    from perflint.engine.crashes import contained
    from perflint.findings import Problem

    _set_up_process()
    problems: list[Problem] = []
    code = 2
    fault: OSError | None = None
    with contained(problems, "", lambda: ("perflint", None, "please report this, with the command")):
        module = importlib.import_module(f"perflint.cli.{verb}")
        # An abbreviation would change its meaning with the next option that begins alike.
        parser = Parser(f"perflint {verb}", description=module.__doc__, epilog=_EXIT_CODES, allow_abbrev=False)
        module.add_arguments(parser)
        try:
            code = module.run(_parsed(parser, rest, hasattr(module, "COMMAND_FOLLOWS")))
        except ConfigurationError as error:
            for each in error.all:
                _say(each.message, each.help)
        except OSError as error:
            fault = error
    if fault is not None:
        raise fault
    for problem in problems:
        _say(problem.message, problem.help)
    return code


def _parsed(parser: ArgumentParser, arguments: list[str], command_follows: bool) -> Namespace:
    """The options; what stands after `--` is `command` where one follows, which argparse cannot tell from paths."""
    from argparse import Namespace

    if not command_follows:
        return parser.parse_args(arguments)
    own = _before_command(arguments)
    return parser.parse_args(own, Namespace(command=arguments[len(own) + 1 :]))


def _before_command(arguments: list[str]) -> list[str]:
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _set_up_process() -> None:
    import atexit
    import gc
    import warnings

    # Syntax trees are many objects and no circles: looking for some takes a quarter of the time.
    gc.disable()
    # Python looks for some at the end, too, and would free each object before the system does.
    atexit.register(gc.freeze)
    # Paths and source lines may hold what the terminal's encoding cannot show.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # Of linted code: Python warns about it where it parses it.
    warnings.simplefilter("ignore", SyntaxWarning)


def _overview() -> ArgumentParser:
    from argparse import ArgumentParser, RawDescriptionHelpFormatter

    commands = "\n".join(f"  {verb:12}{what}" for verb, what in VERBS.items())
    parser = ArgumentParser(
        "perflint",
        usage="perflint [--version] [--help] COMMAND ...",
        description=f"{_DESCRIPTION}\n\ncommands (`perflint COMMAND --help` tells more):\n{commands}",
        epilog=_EXIT_CODES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", "-V", action="store_true", help="print the version and exit")
    return parser


def _unknown(word: str, rest: list[str]) -> int:
    import shlex

    from perflint.cli.usage import habits
    from perflint.config.errors import did_you_mean

    # A path or an option: the command itself is missing.
    if os.path.exists(word) or word.startswith("-"):
        return _fault("the first argument must be a command", f"`perflint check {shlex.join([word, *rest])}`")
    meant = habits("commands").get(word) or did_you_mean(word, VERBS, 0.7)
    others = "`perflint check PATH` checks files; `perflint --help` lists all commands"
    return _fault(f"unknown command `{word}`", meant or others)


def _fault(message: str, help: str) -> int:
    _say(message, help)
    return 2


def _say(message: str, help: str | None) -> None:
    from perflint.output.terminal import Style, wants_colours
    from perflint.output.writer import message_text

    sys.stdout.flush()
    sys.stderr.write(message_text("error", message, help, Style(wants_colours("auto", sys.stderr))))

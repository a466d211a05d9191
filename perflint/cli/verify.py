"""Apply fixes in a copy of the project, run a program with and without them, and keep the good ones.

A fix is kept where the program with it is not slower and its results change no more than the fix's
safety allows: with a safe one not at all. The diff of those that are kept is printed, or --apply
writes them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from perflint.cli import options
from perflint.cli.fix import confirmed_by, write_fixed
from perflint.config.errors import ConfigurationError
from perflint.config.settings import Settings
from perflint.engine.active import active_rules
from perflint.engine.file import check_source
from perflint.engine.projects import Projects
from perflint.findings import Report
from perflint.output.diff import diff_lines, shown
from perflint.output.summary import count
from perflint.output.terminal import Style
from perflint.output.verify import (
    fixes,
    forecast_text,
    run_text,
    stopped_document,
    stopped_text,
    verification_document,
    verification_text,
)
from perflint.output.writer import message_text, problem_text
from perflint.semantics.project import Project
from perflint.source.files import STANDARD_INPUT, discover
from perflint.source.text import Source
from perflint.tracer.probe import ProbeOptions
from perflint.verify.execution import Program, Run, runnable
from perflint.verify.plan import Chosen, Plan
from perflint.verify.search import Partial, ProgramError, Search, Verification, expected_runs
from perflint.verify.stopping import Stopped, stoppable
from perflint.verify.workspace import Workspace, project_root

COMMAND_FOLLOWS = True
"""The words after `--` are a command."""
_EXIT_CODES = (
    "Exit codes: 0 all fixes are kept, or there are none; 1 a fix was dropped, the program fails without any, or the "
    "time budget is spent; 2 a fault in the usage, the settings, a file or perflint; 130 or 143 ended by Ctrl-C or "
    "SIGTERM."
)
_PATIENCE = 5
"""How many times as long as the original a program with fixes may take."""
_AT_LEAST = 60.0
"""Seconds that any run may take."""


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint verify`."""
    parser.usage = "perflint verify [options] [PATH ...] -- COMMAND"
    parser.epilog = _EXIT_CODES
    options.add_paths(parser)
    options.add_selection(parser)
    options.add_trace(parser)
    group = options.add_fixing(parser)
    group.add_argument("--each", action="store_true")
    _add_running(parser)
    group = parser.add_argument_group("output")
    group.add_argument("--output-format", dest="report", choices=["text", "json"], default="text")
    options.add_colour(group)


def _add_running(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("running the program")
    group.add_argument(
        "--repeat", type=_from(2), default=3, metavar="N", help="pairs of runs in a comparison (default: %(default)s)"
    )
    group.add_argument(
        "--steps",
        type=_from(0),
        default=100,
        metavar="N",
        help="end the program after so many timed steps of its optimizer; 0 to let it run (default: %(default)s)",
    )
    group.add_argument(
        "--warmup", type=_from(1), default=10, metavar="N", help="steps that are not timed (default: %(default)s)"
    )
    group.add_argument("--tolerance", type=float, default=5.0, metavar="PERCENT")
    group.add_argument("--seed", type=_from(0), metavar="N", help="seed the generators of Python, NumPy and torch")
    group.add_argument("--timeout", type=float, metavar="SECONDS")
    group.add_argument("--time-budget", type=_positive, metavar="SECONDS")
    group.add_argument("--root", metavar="FOLDER", help="the project to copy (default: the repository around it)")
    group.add_argument(
        "--share", action="append", default=[], metavar="PATH", help="link to this in the copy: it is only read"
    )
    group.add_argument(
        "--leave-out", action="append", default=[], metavar="PATH", help="the program does not need this in the copy"
    )


def run(arguments: Namespace) -> int:
    """Verify. 0 where all is kept, 1 where something is dropped or the program fails, 2 on faults."""
    paths = options.paths(arguments)
    if paths == [STANDARD_INPUT]:
        raise ConfigurationError("standard input cannot be verified", "name files or folders of the project")
    if not arguments.command:
        raise ConfigurationError(
            "there is no program to run", "perflint verify [options] [PATH ...] -- python train.py"
        )
    # Copying and checking take long, and would be for nothing.
    runnable(arguments.command)
    if hasattr(sys.stdout, "reconfigure"):
        # The lines of a diff end as those of the file do.
        sys.stdout.reconfigure(newline="")
    root = Path(arguments.root).resolve() if arguments.root else project_root(Path.cwd())
    settings = options.settings(arguments, paths)
    notes = options.style(arguments, sys.stderr)
    try:
        with stoppable():
            return _verified(paths, arguments, settings, root, notes)
    except Stopped as stop:
        sys.stderr.write(message_text("error", f"stopped: {stop.reason}", None, notes))
        return stop.status


def _verified(paths: list[str], arguments: Namespace, settings: Settings, root: Path, notes: Style) -> int:
    """The exit code. Raises Stopped if it ends outside of the search."""
    try:
        workspace = Workspace(
            root, [Path(path) for path in arguments.share], [Path(path) for path in arguments.leave_out]
        )
    except OSError as error:
        raise ConfigurationError(
            f"{root} cannot be copied: {error}", "name another `--root`, or `--leave-out`"
        ) from None
    try:
        return _Job(arguments, settings, workspace, notes).run(paths)
    finally:
        workspace.close()


class _Job:
    """One verification."""

    def __init__(self, arguments: Namespace, settings: Settings, workspace: Workspace, notes: Style) -> None:
        self._arguments = arguments
        self._settings = settings
        self._workspace = workspace
        self._notes = notes
        self._faults = False
        self._slowest = 0.0
        budget = arguments.time_budget
        self._deadline = None if budget is None else time.monotonic() + budget

    def run(self, paths: list[str]) -> int:
        """The exit code."""
        with closing(self._program()) as program:
            return self._verified(program, paths)

    def _verified(self, program: Program, paths: list[str]) -> int:
        arguments = self._arguments
        plan = self._plan(paths)
        if not plan.candidates:
            sys.stderr.write("Nothing to fix, so there is nothing to verify.\n")
            return 2 if self._faults else 0
        runs = expected_runs(plan.candidates, arguments.repeat, arguments.each)
        work = f"{fixes(len(plan.candidates))} to verify in {count(len(plan.texts), 'file')}"
        sys.stderr.write(f"{work}, in about {count(runs, 'run')}.\n")

        def run(chosen: Chosen, reseed: bool) -> Run:
            is_first = not self._slowest
            done = self._run(program, plan, chosen, reseed)
            if is_first and done.ms is not None:
                sys.stderr.write(forecast_text(runs, done) + "\n")
            return done

        search = Search(run, plan.changed, arguments.repeat, arguments.tolerance / 100, arguments.each)
        try:
            result = search.verify(plan.candidates)
        except ProgramError as error:
            self._tell_failure(error)
            return 1
        except Stopped as stop:
            self._tell_stopped(plan, search.so_far(plan.candidates), stop)
            return stop.status
        self._tell(plan, result)
        return 2 if self._faults else 1 if result.dropped else 0

    def _program(self) -> Program:
        arguments, workspace = self._arguments, self._workspace
        seen = ProbeOptions(
            output=str(workspace.output),
            original=str(workspace.root),
            copy=str(workspace.folder),
            shared=tuple(workspace.shared),
            warmup=arguments.warmup,
            steps=arguments.steps,
            seed=arguments.seed,
        )
        return Program(arguments.command, workspace, seen)

    def _plan(self, paths: list[str]) -> Plan:
        found = discover(paths, self._settings, self._arguments.force_exclude)
        files = [file for file in found.files if self._workspace.holds(file)]
        for file in sorted(set(found.files) - set(files)):
            self._warn(f"{file} is not part of the copy, so it is not fixed", f"the copy is of {self._workspace.root}")
        rules = active_rules(self._settings)
        evidence = options.evidence(self._arguments)
        judge = None if evidence is None else confirmed_by(evidence)

        def check(path: str, text: str, project: Project) -> Report:
            return check_source(Source(path, text), project, rules, self._settings, judge=judge)

        length = options.line_length(self._arguments, paths)
        plan = Plan(files, check, Projects(self._settings), options.safeties(self._arguments), length)
        if evidence is not None:
            sys.stderr.write(options.trace_warning(evidence, self._notes))
            sys.stderr.write(options.experiments_text(evidence, self._arguments, self._notes))
        for problem in (*found.problems, *plan.problems):
            self._faults = True
            sys.stderr.write(problem_text(problem, self._notes))
        for skipped in plan.skipped:
            finding = skipped.finding
            self._warn(f"{finding.path}:{finding.span.line}: {finding.code} was not fixed: {skipped.reason}")
        return plan

    def _run(self, program: Program, plan: Plan, chosen: Chosen, reseed: bool) -> Run:
        patience = max(self._slowest * _PATIENCE, _AT_LEAST) if chosen and self._slowest else None
        left = None if self._deadline is None else self._deadline - time.monotonic()
        if left is not None and left <= self._slowest:
            raise self._out_of_time()
        limits = [seconds for seconds in (self._arguments.timeout, patience, left) if seconds is not None]
        try:
            run = program.run(plan.encoded(chosen), min(limits, default=None), reseed)
        except OSError as error:
            raise ConfigurationError(f"the program cannot be run: {error}") from None
        if run.status is None and left is not None and run.seconds >= left:
            raise self._out_of_time()
        if not chosen:
            self._slowest = max(self._slowest, run.seconds)
        what = f"with {len(chosen)} of {fixes(len(plan.candidates))}" if chosen else "original"
        if reseed:
            what += " with other seeds"
        sys.stderr.write(run_text(what, run) + "\n")
        sys.stderr.flush()
        for problem in run.seen.problems if run.seen is not None else ():
            self._warn(problem)
        return run

    def _out_of_time(self) -> Stopped:
        return Stopped(f"the time budget of {self._arguments.time_budget:g} s is spent", 1)

    def _tell_stopped(self, plan: Plan, partial: Partial, stop: Stopped) -> None:
        """Print the diff of the fixes that passed so far, and report. Writes no file."""
        lines = self._diff(plan, plan.changed(partial.kept))
        if self._arguments.report == "json":
            self._print_json(stopped_document(partial, stop, "".join(lines)))
        else:
            sys.stdout.writelines(shown(lines, options.style(self._arguments, sys.stdout), sys.stdout))
        sys.stdout.flush()
        sys.stderr.write(stopped_text(partial, stop, self._notes))
        if self._arguments.apply:
            self._warn("nothing was written, because the verification is not complete")

    def _diff(self, plan: Plan, texts: Mapping[str, str]) -> list[str]:
        return [line for path, text in texts.items() for line in diff_lines(path, plan.texts[path], text)]

    def _print_json(self, document: Mapping[str, object]) -> None:
        json.dump(document, sys.stdout, indent=2)
        sys.stdout.write("\n")

    def _tell(self, plan: Plan, result: Verification) -> None:
        """Write or print what is kept, and report."""
        kept = plan.changed(result.kept)
        lines = self._diff(plan, kept)
        if self._arguments.report == "json":
            self._print_json(verification_document(result, "".join(lines)))
        elif not self._arguments.apply:
            sys.stdout.writelines(shown(lines, options.style(self._arguments, sys.stdout), sys.stdout))
        sys.stdout.flush()
        if self._arguments.apply:
            self._write(plan, kept)
        sys.stderr.write(verification_text(result, self._notes))
        changed = set(self._workspace.changed()) - {os.path.relpath(path, self._workspace.root) for path in kept}
        if changed:
            names = ", ".join(sorted(changed)[:5])
            self._warn(f"changed in the original meanwhile: {names}", "was it you, or the program by a full path?")

    def _write(self, plan: Plan, kept: Mapping[str, str]) -> None:
        for path, text in kept.items():
            problem = write_fixed(path, plan.texts[path], text)
            if problem is not None:
                self._faults = True
                sys.stderr.write(problem_text(problem, self._notes))

    def _tell_failure(self, error: ProgramError) -> None:
        help = (
            "it runs in a copy of the project: see `--root`, `--share` and `--leave-out`"
            if error.run.failed
            else "a step is one of an optimizer, a batch of a loader or a call of a model; see `--warmup`"
        )
        sys.stderr.write(message_text("error", error.message, help, self._notes))
        if error.run.told:
            sys.stderr.write(error.run.told + "\n")

    def _warn(self, message: str, help: str | None = None) -> None:
        sys.stderr.write(message_text("warning", message, help, self._notes))


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise ArgumentTypeError(f"`{text}` is not a number of seconds")
    return number


def _from(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or len(text) > 9 or int(text) < least:
            raise ArgumentTypeError(f"`{text}` is not a number from {least}")
        return int(text)

    return number

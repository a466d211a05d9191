"""Make a program faster: try changes of its source in its own loop, and keep those that pay with proof.

The program runs in a copy of its project. Each change is written into the copy, timed in turns with the program
without it, and compared with it. The good changes are left as a patch for `git apply`; --apply writes them.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

from perflint import __version__
from perflint.cli import options
from perflint.cli.fix import write_fixed
from perflint.cli.report import write_whole
from perflint.cli.verify import _from as at_least
from perflint.config.errors import ConfigurationError
from perflint.config.settings import Settings
from perflint.engine.active import active_rules
from perflint.engine.file import check_source
from perflint.engine.projects import Projects
from perflint.findings import Report, Safety
from perflint.output.diff import diff_lines, patch_of
from perflint.output.report.facts import gather
from perflint.output.terminal import Style, printable
from perflint.output.tune import headline, tuning_text
from perflint.output.tune_page import tuning_page
from perflint.output.writer import message_text, problem_text
from perflint.semantics.project import Project
from perflint.source.reading import Text, Unreadable, read
from perflint.source.text import Source
from perflint.tracer.file import read_trace
from perflint.tracer.probe import ProbeOptions
from perflint.tracer.trace import Trace
from perflint.tune.changes import COLLECTIVES, COMPILE, GRAPH, LAYOUT, LOADER, PRECISION, Change, fixes
from perflint.tune.evidence import Evidence, Loader
from perflint.tune.graphs.outlining import Seen
from perflint.tune.log import Log
from perflint.tune.refused import Refused
from perflint.tune.tuning import LEAST, Outcome, Tuning, Way
from perflint.verify.execution import Program, Run, runnable
from perflint.verify.plan import Chosen, Plan
from perflint.verify.stopping import TIME_SPENT, Stopped, stoppable
from perflint.verify.workspace import Workspace, project_root

COMMAND_FOLLOWS = True
"""The words after `--` are a command."""
CHANGES = (LOADER, GRAPH, COMPILE, LAYOUT, COLLECTIVES)
NAMES = ("fixes", *(each.name for each in CHANGES))
INEXACT = tuple(each.name for each in PRECISION)
"""Those that need --allow."""
_PRECISION = "precision"
_EXIT_CODES = (
    "Exit codes: 0 the search has ended, with or without a gain; 1 the program fails, or the budget is spent; 2 a "
    "fault in the usage, the settings or perflint; 130 or 143 ended by Ctrl-C or SIGTERM."
)
_OUTPUT = "perflint-tune.patch"
_UNITS = {"s": 1, "m": 60, "h": 3600}
_PATIENCE = 3
"""How many times as long as the original a changed program may take."""
_AT_LEAST = 180.0
"""Seconds that any run may take: the compiler is slow."""
_ENOUGH = 10.0
"""Seconds of timed steps in a run that need not have more."""
_PREPARING = 30.0
"""Seconds after which a program without an optimizer is one that only evaluates or generates."""
_SHARE = 0.5
"""The share of the budget that one changed program may take, if that is more."""


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint tune`."""
    parser.usage = "perflint tune [options] -- COMMAND\n       perflint tune [options] --trace FILE"
    parser.epilog = _EXIT_CODES
    parser.add_argument(
        "--trace", metavar="FILE", help="try only what could pay by this trace, of its program if no command is given"
    )
    parser.add_argument("--budget", type=_seconds, default=1200.0, metavar="TIME")
    parser.add_argument("--only", metavar="NAMES", help=f"try these only, with commas: {', '.join((*NAMES, *INEXACT))}")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--apply", action="store_true", help="write the files, besides the patch")
    parser.add_argument(
        "--allow",
        choices=[_PRECISION],
        action="append",
        default=[],
        help=f"also try {' and '.join(INEXACT)}, and let them and {LAYOUT.name} change the numbers",
    )
    parser.add_argument("-o", "--output", default=_OUTPUT, metavar="FILE", help="the patch; a page of the same name")
    group = parser.add_argument_group("running the program")
    group.add_argument("--repeat", type=at_least(2), default=3, metavar="N", help="pairs of runs in a comparison")
    group.add_argument(
        "--steps", type=at_least(1), default=100, metavar="N", help="timed steps of a run; 30 to N if they are slow"
    )
    group.add_argument("--warmup", type=at_least(12), default=30, metavar="N", help="steps that are not timed")
    group.add_argument("--seed", type=at_least(0), default=0, metavar="N", help="seed of all generators")
    group.add_argument("--root", metavar="FOLDER", help="the project to copy (default: the repository around it)")
    group.add_argument("--share", action="append", default=[], metavar="PATH", help="link to this in the copy")
    group.add_argument("--leave-out", action="append", default=[], metavar="PATH", help="not needed in the copy")
    options.add_selection(parser)
    options.add_colour(parser.add_argument_group("output"))


def run(arguments: Namespace) -> int:
    """Tune. 0 if the search ended, 1 if the program fails or the time is spent, 2 on faults."""
    trace = read_trace(Path(arguments.trace)) if arguments.trace else None
    traced = _evidence(trace) if trace is not None else None
    if traced is not None and arguments.dry_run:
        _show(traced, arguments)
        return 0
    root = Path(arguments.root).resolve() if arguments.root else project_root(Path.cwd())
    if trace is not None and not arguments.command and trace.header.program:
        arguments.command = _of_trace(trace.header.program, root)
    if not arguments.command:
        raise ConfigurationError("there is no program to run", "perflint tune [options] -- python train.py")
    runnable(arguments.command)
    shared, left_out = ([Path(path) for path in paths] for paths in (arguments.share, arguments.leave_out))
    try:
        workspace = Workspace(root, shared, left_out)
    except OSError as error:
        raise ConfigurationError(f"{root} cannot be copied: {error}", "name another `--root`") from None
    try:
        return _Job(arguments, workspace, traced).run()
    finally:
        workspace.close()


def _of_trace(program: Sequence[str], root: Path) -> list[str]:
    """The command of a trace, which may be forged. Raises ConfigurationError if it is no script of the project."""
    script = Path(os.path.realpath(program[0]))
    if not script.is_file() or not script.is_relative_to(root.resolve()) or "site-packages" in script.parts:
        help = "name the command: perflint tune --trace FILE -- python train.py"
        raise ConfigurationError(
            f"the program of the trace, {printable(program[0])}, is no script of the project", help
        )
    return [sys.executable, str(script), *program[1:]]


def _evidence(trace: Trace) -> Evidence:
    """The facts of a trace that say which changes may pay. Raises ConfigurationError."""
    facts = gather(trace)
    if facts.step_ms is None:
        raise ConfigurationError("the trace has no step times", "record it with `perflint trace --window 3`")
    loading = facts.idle.loader_ms / facts.step_ms if facts.idle is not None else 0.0
    return Evidence(Seen({}, ()), (Loader("", 1, 0, loading),), facts.step_ms, facts.busy_ms)


def _show(evidence: Evidence, arguments: Namespace) -> None:
    """Print the forecasts of the changes, the best first."""
    changes = _wanted(fixes(lambda *_: {}), arguments)
    for change in sorted(changes, key=lambda each: -each.forecast(evidence)):
        print(f"{change.name}: {change.title}; at most {change.forecast(evidence):.0%} of a step")


def _wanted(all_fixes: Change, arguments: Namespace) -> list[Change]:
    """The changes that the user wants. Raises ConfigurationError."""
    changes = [all_fixes, *CHANGES, *(PRECISION if arguments.allow else ())]
    names = {each.name for each in changes}
    wanted = arguments.only.split(",") if arguments.only else names
    unknown = next((each for each in wanted if each not in names), None)
    if unknown in INEXACT:
        raise ConfigurationError(f"`{unknown}` changes the numbers", f"add `--allow {_PRECISION}`")
    if unknown is not None:
        raise ConfigurationError(
            f"`{unknown}` is not a change", f"choose from {', '.join(each.name for each in changes)}"
        )
    return [each for each in changes if each.name in wanted]


class _Job:
    """One search. `traced` are the facts of a trace, if there is one."""

    def __init__(self, arguments: Namespace, workspace: Workspace, traced: Evidence | None) -> None:
        self._arguments = arguments
        self._traced = traced
        self._workspace = workspace
        self._texts: dict[str, Text] = {}
        self._chosen: dict[Change, Chosen] = {}
        """The fixes of the changes that apply some of them."""
        self._plan: Plan | None = None
        self._outcome = Outcome()
        self._has_faults = False
        """True if a file could not be written."""
        self._deadline = time.monotonic() + arguments.budget
        self._usual = 0.0
        """The seconds of the last run of the original."""
        output = Path(arguments.output)
        self._log = Log(log := output.with_suffix(".runs.jsonl"))
        self._project = workspace.digest([output, log, output.with_suffix(".html")])
        probe = ProbeOptions(
            output=str(workspace.output),
            original=str(workspace.root),
            copy=str(workspace.folder),
            shared=tuple(workspace.shared),
            warmup=arguments.warmup,
            steps=arguments.steps,
            seconds=_ENOUGH,
            seed=arguments.seed,
            patience=_PREPARING,
            looks=True,
        )
        self._program = Program(arguments.command, workspace, probe)

    def run(self) -> int:
        """The exit code."""
        inexact = bool(self._arguments.allow)
        tuning = Tuning(self._run, self._read, self._arguments.repeat, 0.05, inexact, _tell, self._holds)
        self._outcome = tuning.outcome
        stopped, status = "", 0
        try:
            with closing(self._program), stoppable():
                evidence = tuning.start()
                if self._arguments.dry_run:
                    _show(evidence, self._arguments)
                    return 0
                tuning.oldest = self._settings(evidence).torch_version
                tuning.search(self._changes(tuning.outcome))
        except Refused as refused:
            sys.stderr.write(message_text("error", f"the original program: {refused.reason}", None, self._style()))
            return 1
        except Stopped as stop:
            stopped, status = stop.reason, stop.status
        self._leave(tuning.outcome, stopped)
        sys.stdout.write(tuning_text(tuning.outcome, options.style(self._arguments, sys.stdout), stopped))
        return status or 2 * self._has_faults

    def _changes(self, outcome: Outcome) -> list[Change]:
        """The changes to try: those that are wanted and could pay by the trace. Notes the others as refused."""
        found = []
        for change in _wanted(self._fixes(), self._arguments):
            share = change.forecast(self._traced) if self._traced is not None else 1.0
            if share < LEAST - 1:
                outcome.refused[change.name] = f"by the trace it could save {share:.1%} of a step at most"
            else:
                found.append(change)
        return found

    def _read(self, path: str) -> str:
        """The text of a file as it is. Raises Refused, as for one that the program itself writes into the copy."""
        try:
            return self._text(path).text
        except Unreadable as error:
            raise Refused(f"{path} ran, but cannot be read: {error.problem.message}", 1) from None

    def _text(self, path: str) -> Text:
        if path not in self._texts:
            self._texts[path] = read(str(self._workspace.root / path))
        return self._texts[path]

    def _run(self, texts: Mapping[str, str], way: Way) -> Run:
        left = self._deadline - time.monotonic()
        spent = Stopped(f"the budget of {self._arguments.budget:g} s is spent", TIME_SPENT)
        if left <= self._usual:
            raise spent
        patience = max(self._usual * _PATIENCE, _AT_LEAST, self._arguments.budget * _SHARE) if texts else left
        root = self._workspace.root
        changes = {str(root / path): self._text(path).encode(text) for path, text in texts.items()}
        given = self._arguments
        machine = [platform.node(), os.environ.get("CUDA_VISIBLE_DEVICES")]
        key = json.dumps(
            [given.command, given.steps, given.warmup, given.seed, machine, self._project, way.value, dict(texts)]
        )

        def do() -> Run:
            done = self._program.run(changes, min(left, patience), way is Way.RESEEDED, way is Way.DETERMINISTIC)
            if done.status is None and left <= patience:
                raise spent
            return done

        run, is_known = self._log.run(key, do)
        if not self._usual:
            self._program.follow(run)
        if not texts:
            self._usual = _seconds_of(run, given.steps)
        ms = f"{run.ms:.3f} ms/step" if run.ms is not None else "no steps timed"
        label = "changed" if texts else "original"
        sys.stderr.write(f"{label}{'' if way is Way.PLAIN else ' ' + way.value}: {ms} ({run.seconds:.0f} s)")
        sys.stderr.write(", from the last search\n" if is_known else "\n")
        sys.stderr.flush()
        return run

    def _fixes(self, chosen: Chosen | None = None) -> Change:
        """Some fixes as a change, or all that there are."""
        change = fixes(
            lambda _, evidence: self._fixed(chosen, evidence),
            ", ".join(sorted({each.code for each in chosen or ()})),
            lambda: [self._fixes(part) for part in self._parts(chosen)],
        )
        if chosen is not None:
            self._chosen[change] = chosen
        return change

    def _fixed(self, chosen: Chosen | None, evidence: Evidence) -> dict[str, str]:
        """The files with some fixes, on top of those that are kept. Raises Refused."""
        plan = self._plan or self._planned(evidence)
        if not plan.candidates:
            raise Refused("there are none", 1)
        kept = [self._chosen.get(each.change, frozenset()) for each in self._outcome.kept]
        whole = plan.candidates if chosen is None else chosen.union(*kept)
        return {os.path.relpath(path, self._workspace.root): text for path, text in plan.changed(whole).items()}

    def _parts(self, chosen: Chosen | None) -> list[Chosen]:
        """The safe fixes and the others, or two halves by rules; nothing for those of a single rule."""
        whole = chosen or (self._plan.candidates if self._plan is not None else frozenset())
        safe = frozenset(each for each in whole if each.safety is Safety.SAFE)
        codes = sorted({each.code for each in whole})
        first = safe if safe and safe != whole else {each for each in whole if each.code in codes[: len(codes) // 2]}
        return [part for part in (frozenset(first), whole - first) if part] if first else []

    def _files(self, evidence: Evidence) -> list[str]:
        held = [path for path in sorted(evidence.files) if path.endswith(".py") and self._holds(path)]
        return [str(self._workspace.root / path) for path in held]

    def _holds(self, path: str) -> bool:
        return self._workspace.holds(str(self._workspace.root / path))

    def _settings(self, evidence: Evidence) -> Settings:
        return options.settings(self._arguments, self._files(evidence))

    def _planned(self, evidence: Evidence) -> Plan:
        files, settings = self._files(evidence), self._settings(evidence)
        rules = active_rules(settings)

        def check(path: str, text: str, project: Project) -> Report:
            return check_source(Source(path, text), project, rules, settings)

        self._plan = Plan(files, check, Projects(settings), (Safety.SAFE, Safety.UNSAFE))
        return self._plan

    def _leave(self, outcome: Outcome, stopped: str) -> None:
        """Write the patch and the page, and with --apply the files."""
        changed = [(path, self._text(path), text) for path, text in sorted(outcome.texts.items())]
        output = self._arguments.output
        if changed:
            write_whole(output, b"".join(patch_of(*each) for each in changed), output == _OUTPUT)
        patch = "".join(chain.from_iterable(diff_lines(*each) for each in changed))
        page = tuning_page(outcome, self._arguments.command, patch, __version__, stopped)
        beside = str(Path(output).with_suffix(".html"))
        write_whole(beside, page.encode("utf-8", "backslashreplace"), output == _OUTPUT)
        if self._arguments.apply:
            for path, text in outcome.texts.items():
                problem = write_fixed(str(self._workspace.root / path), self._text(path), text)
                if problem is not None:
                    sys.stderr.write(problem_text(problem, self._style()))
                    self._has_faults = True

    def _style(self) -> Style:
        return options.style(self._arguments, sys.stderr)


def _seconds_of(run: Run, steps: int) -> float:
    """The time of a run that is ended after some steps, at least. One that went on to its end does not tell it."""
    is_longer = run.seen is not None and not run.seen.stopped and len(run.seen.times) >= steps
    return 1.0 if is_longer else run.seconds


def _tell(outcome: Outcome) -> None:
    """Show what was found so far."""
    sys.stderr.write(f"kept {outcome.kept[-1].change.name}: {headline(outcome)}\n")
    sys.stderr.flush()


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if found is None or not float(found[1]):
        raise ArgumentTypeError(f"`{text}` is not a time such as 20m")
    return float(found[1]) * _UNITS[found[2] or "s"]

"""Checking one file."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from perflint.config.settings import Profile, Settings, Version
from perflint.engine.active import rules_for_file
from perflint.engine.crashes import contained
from perflint.engine.deprecations import once_per_file
from perflint.engine.looks import look
from perflint.engine.offers import offered
from perflint.engine.profiles import STRICTER, claims, shows
from perflint.engine.severity import severity_at
from perflint.engine.thresholds import settled
from perflint.findings import Elsewhere, Finding, Problem, Report, Silenced, Silencer
from perflint.frozen import replace
from perflint.rules.base import Rule
from perflint.rules.precedence import speaking
from perflint.rules.registry import RuleSet
from perflint.semantics.depth import deep_stack
from perflint.semantics.model import Model
from perflint.semantics.project import Interrupted
from perflint.source.suppressions import Suppressions
from perflint.source.text import Source

if TYPE_CHECKING:
    from perflint.engine.timings import Timings
    from perflint.semantics.project import Project
    from perflint.source.notebooks import Notebook

_REPORT_IT = "please report this, with the code of that line"
_ASKED_AT_ONCE = 16
"""The functions of a run for which the clock is asked once."""
_HOUR = 3600
"""The longest first wait of a timer, in seconds: `setitimer` fails for large numbers. Then it looks every second."""


Judge = Callable[[Source, Sequence[Finding]], Sequence[Finding]]
"""Gives findings of a file the verdicts of a trace, and adds those that only the trace has."""


def check_source(
    source: Source,
    project: Project,
    rules: RuleSet,
    settings: Settings,
    noqa: bool = True,
    judge: Judge | None = None,
    keep: Callable[[Report, Model], None] | None = None,
    timings: Timings | None = None,
    part: range | None = None,
) -> Report:
    """The findings of the rules in a file by position, with errors of the file or of perflint.

    Never raises: a syntax error or a crash of a rule is a problem in the report. Without `noqa`,
    comments of that name are left to the caller. `keep` is given the report of a file without problems, and the
    model that it rests on, before the model is closed. With `part`, the report has only findings that begin on these
    lines and that rules find at one place: none about the whole file or its comments.
    """
    report = Report()
    project.adopt(source)
    phase = nullcontext if timings is None else timings.phase
    with phase("parsing"):
        problem = unparsable(source)
    if problem is not None:
        report.problems.append(problem)
        return report
    report.problems += broken_cells(source.path, source.notebook)
    report.files = 1
    report.lines = len(source.lines)
    here = rules_for_file(rules, settings, source.path)
    found: Sequence[Finding]
    with _limited(source.path, project, settings, report.problems):
        found, model = run_rules(source, project, here, settings.torch_version, report.problems, timings, part)
        try:
            if judge is not None:
                on = {rule.code for rule in here.rules}
                found = [
                    finding
                    for finding in _offered(judge(source, found), len(found), settings, model)
                    if finding.code in on
                ]
            if part is not None:
                found = [finding for finding in found if finding.span.line in part]
            suppressions = Suppressions(source, noqa, settings.respect_comments)
            found = once_per_file(found, here.rules, settings.torch_version, suppressions.silencer)
            found = sorted(found, key=lambda finding: (finding.span, finding.code))
            hidden = _sift(found, suppressions, settings, report)
            report.elsewhere += _elsewhere(hidden, settings, model)
            if report.findings:
                # A file without findings does not pay for this import.
                from perflint.engine.places import placed

                crash = contained(report.problems, source.path, lambda: ("giving reasons", None, _REPORT_IT))
                with phase("reasons"), crash, deep_stack():
                    model = model or Model(source, project)
                    report.findings = placed(report.findings, here.rules, model)
            if part is None and (suppressions.comments or suppressions.unknown) and not report.problems:
                from perflint.engine.comments import comment_findings

                about = comment_findings(source, suppressions, here, settings)
                report.findings = sorted([*report.findings, *about], key=lambda finding: (finding.span, finding.code))
            report.findings = settled(report.findings, settings)
            if keep is not None and model is not None and not report.problems:
                keep(report, model)
        finally:
            if model is not None:
                model.close()
    return report


@contextmanager
def _limited(path: str, project: Project, settings: Settings, problems: list[Problem]) -> Iterator[None]:
    """Ends a check that takes more processor time than the settings allow, which is a problem of the file."""
    end = time.thread_time() + settings.time_limit
    asked = itertools.count()

    def is_in_time() -> bool:
        # A system call for each function would take longer than some functions.
        return next(asked) % _ASKED_AT_ONCE > 0 or time.thread_time() < end

    try:
        with project.while_wanted(is_in_time), _stopped(end, settings.time_limit):
            yield
    except Interrupted:
        if time.thread_time() < end:
            raise
        message = f"the check took more than {settings.time_limit} s, and was ended"
        problems.append(Problem(path, message, help="`time-limit` in the settings allows more seconds"))


@contextmanager
def _stopped(end: float, seconds: float) -> Iterator[None]:
    """Also ends code that never asks whether to go on, such as a loop that does not end; in the main thread of Unix."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: object) -> None:
        if time.thread_time() > end:
            raise Interrupted

    handler = signal.signal(signal.SIGVTALRM, stop)
    timer = signal.setitimer(signal.ITIMER_VIRTUAL, min(seconds, _HOUR), 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, *timer)
        signal.signal(signal.SIGVTALRM, handler)


def _offered(findings: Sequence[Finding], known: int, settings: Settings, model: Model | None) -> Sequence[Finding]:
    """The findings of a judge; those beyond the first `known`, which are new, with their fixes as users get them."""
    if all(finding.fix is None for finding in findings[known:]):
        return findings
    is_scripted = (lambda line: False) if model is None else model.is_scripted
    in_tests = model is not None and model.module.is_of_tests
    new = (offered(each, settings.torch_version, is_scripted, in_tests) for each in findings[known:])
    return [*findings[:known], *new]


def unparsable(source: Source) -> Problem | None:
    """The reason why there is no syntax tree, or None. Afterwards `source.tree` is set."""
    try:
        source.tree  # noqa: B018
    except SyntaxError as error:
        # Python gives 0 for places that it does not know, such as that of a number with too many digits.
        line, column = error.lineno or None, error.offset or None
        if line is None and "\0" in source.text:
            line, column = _place_of(source, "\0")
        return Problem(source.path, f"syntax error: {error.msg}", help=_SYNTAX, line=line, column=column)
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error) or "it is nested too deeply, or too large for the memory"
        return Problem(source.path, f"cannot be parsed: {reason}")
    return None


_RUNNING = f"Python {sys.version_info.major}.{sys.version_info.minor}"
_SYNTAX = f"perflint reads the syntax of {_RUNNING}, which it runs on; run it with a newer Python for newer syntax"


def broken_cells(path: str, notebook: Notebook | None) -> list[Problem]:
    """The errors of cells that do not parse: the rest of the notebook is checked."""
    help = f"the other cells are checked; {_SYNTAX}"
    return [
        Problem(path, f"syntax error: {error.msg}", help=help, line=line, column=error.offset or None)
        for line, error in (notebook.broken if notebook is not None else ())
    ]


def _place_of(source: Source, text: str) -> tuple[int, int]:
    """The line and the column where a text first occurs."""
    before = source.text.partition(text)[0]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def run_rules(
    source: Source,
    project: Project,
    rules: RuleSet,
    torch_version: Version | None,
    problems: list[Problem],
    timings: Timings | None = None,
    part: range | None = None,
) -> tuple[list[Finding], Model | None]:
    """The findings of a file, and the model of it, if one was needed. Who calls it closes the model."""
    findings: list[Finding] = []
    model: Model | None = None
    if not rules.rules:
        return findings, model
    with contained(problems, source.path, lambda: ("inference", None, _REPORT_IT)), deep_stack():
        crashed: set[Rule] = set()
        model = Model(source, project, part=part)
        ask = look
        if timings is not None:
            with timings.phase("inference"):
                model.infer()
            ask = timings.look
        for site in model.sites():
            project.go_on()
            for rule in rules.listening(site):
                if rule in crashed:
                    continue
                known = len(problems)
                findings += ask(rule, site, torch_version, problems) or ()
                if len(problems) > known:
                    # Once a file is enough to know.
                    crashed.add(rule)
        if project.declared.sync:
            from perflint.engine.declared import declared_findings

            findings += declared_findings(model, rules)
    return speaking(findings, rules.rules).findings, model


def _sift(findings: Sequence[Finding], suppressions: Suppressions, settings: Settings, report: Report) -> list[Finding]:
    """Put findings where they belong: shown, or silenced by a comment. Returns those left to a stricter profile."""
    hidden = []
    for finding in findings:
        shown = shows(settings.profile, finding)
        comment = suppressions.silencer(finding)
        if comment is not None:
            if shown:
                finding = replace(finding, severity=severity_at(finding))
                report.silenced.append(Silenced(finding, Silencer.COMMENT, comment.reason))
            continue
        if finding.verdict is not None and (shown or claims(settings.profile, finding)):
            ruling = finding.verdict.ruling
            report.verdicts[ruling] = report.verdicts.get(ruling, 0) + 1
        if shown:
            report.findings.append(finding)
        else:
            hidden.append(finding)
            for stricter in STRICTER[settings.profile]:
                if shows(stricter, finding):
                    report.hidden[stricter.value] = report.hidden.get(stricter.value, 0) + 1
    return hidden


def _elsewhere(hidden: Iterable[Finding], settings: Settings, model: Model | None) -> list[Elsewhere]:
    """What the profile `pedantic` would add to the default one in a file, by function."""
    if settings.profile is not Profile.DEFAULT or model is None:
        return []
    lines = [finding.span.line for finding in hidden if shows(Profile.PEDANTIC, finding)]
    counts = Counter(model.module.function_at(line) for line in lines)
    return [Elsewhere(model.source.path, function, count) for function, count in counts.items()]

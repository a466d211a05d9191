"""Fix findings: print a diff, or write with --apply.

Standard input (`-`) comes out fixed on standard output. Fixes are those of the findings that
`perflint check` shows with the same options.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from perflint.cli import means, options
from perflint.config.errors import ConfigurationError
from perflint.config.settings import Settings
from perflint.engine.active import active_rules
from perflint.engine.cache.caches import Caches
from perflint.engine.file import Judge, broken_cells, check_source
from perflint.engine.files import Means, check_files
from perflint.engine.fixing import fix_text
from perflint.engine.projects import Projects
from perflint.findings import Finding, Problem, Report, Safety
from perflint.fixes.apply import Outcome
from perflint.fixes.write import FileChangedError, write_file
from perflint.frozen import dataclass, field, replace
from perflint.output.diff import diff_lines, shown
from perflint.output.notebooks import place_in_cell, problem_in_cell
from perflint.output.summary import count, fixable_with_more
from perflint.output.terminal import Style, printable_path
from perflint.output.writer import message_text, problem_text
from perflint.rules.registry import RuleSet
from perflint.semantics.project import Project
from perflint.source.files import STANDARD_INPUT, Discovery, discover, is_excluded
from perflint.source.notebooks import NotebookError
from perflint.source.reading import Text, Unreadable, read, read_standard_input
from perflint.source.text import Source

if TYPE_CHECKING:
    from perflint.tracer.verdicts import Evidence


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint fix`."""
    options.add_paths(parser)
    options.add_selection(parser)
    options.add_trace(parser)
    means.add_jobs(parser)
    group = options.add_fixing(parser)
    group.add_argument("--verify", action="store_true")
    group.add_argument("--exit-zero", action="store_true", help="exit with 0 though findings remain")
    group.add_argument("--exit-non-zero-on-fix", action="store_true")
    group.add_argument("--show-fixes", action="store_true")
    options.add_colour(group)
    group.add_argument("--quiet", "-q", action="store_true", help="no summary")


def run(arguments: Namespace) -> int:
    """Fix. 0 where nothing remains, 1 where findings remain, those of a diff included, 2 on faults."""
    paths = options.paths(arguments)
    if arguments.apply and paths == [STANDARD_INPUT]:
        raise ConfigurationError("`--apply` cannot write standard input", "without it, the fixed text is printed")
    if hasattr(sys.stdout, "reconfigure"):
        # The lines of a diff end as those of the file do.
        sys.stdout.reconfigure(newline="")
    settings = options.settings(arguments, paths)
    rules = active_rules(settings)
    options.warn_without_rules(rules, settings, arguments)
    job = _Job(
        rules=rules,
        settings=settings,
        safeties=options.safeties(arguments),
        apply=arguments.apply,
        out=options.style(arguments, sys.stdout),
        notes=options.style(arguments, sys.stderr),
        evidence=options.evidence(arguments),
        line_length=options.line_length(arguments, paths),
        lists=arguments.show_fixes,
    )
    if paths == [STANDARD_INPUT]:
        job.standard_input(arguments.stdin_filename, arguments.force_exclude)
    else:
        job.files(paths, arguments.force_exclude, means.means(arguments, writes_last=True))
    sys.stdout.flush()
    if job.evidence is not None:
        sys.stderr.write(options.trace_warning(job.evidence, job.notes))
        sys.stderr.write(options.experiments_text(job.evidence, arguments, job.notes))
    if not arguments.quiet:
        sys.stderr.write(job.summary())
    if job.has_problems:
        return 2
    if job.changed and arguments.exit_non_zero_on_fix:
        return 1
    return 1 if job.leaves_findings and not arguments.exit_zero else 0


@dataclass(slots=True)
class _Job:
    """One run: what is wanted, and what came of it."""

    rules: RuleSet
    settings: Settings
    safeties: tuple[Safety, ...]
    apply: bool
    out: Style
    notes: Style
    evidence: Evidence | None
    """The facts of traces; with them, only confirmed findings are fixed."""
    line_length: int | None
    """The length at which the project's formatter breaks lines, if it is stated."""
    lists: bool = False
    """True if the rules whose findings were fixed are listed for each file."""
    has_problems: bool = False
    fixed: int = 0
    changed: int = 0
    printed: bool = False
    """True if a diff holds the fixes, and no file."""
    remaining: list[Finding] = field(default_factory=list)
    caches: Caches | None = None

    def files(self, paths: Sequence[str], force_exclude: bool, checking: AbstractContextManager[Means]) -> None:
        """Fix files, or print what would change. All are checked before the first is written."""
        found = discover(paths, self.settings, force_exclude, notebooks=True)
        for folder in found.empty:
            help = "only *.py and *.ipynb files that nothing excludes are looked for; name a file to fix it anyway"
            sys.stderr.write(message_text("warning", f"no Python files in {folder}", help, self.notes))
        for problem in found.problems:
            self.tell(problem)
        projects = Projects(self.settings)
        with ExitStack() as stack:
            with checking as ways:
                cache = ways.cache or Path(stack.enter_context(TemporaryDirectory(prefix="perflint-")))
                if self.evidence is None:
                    inside = [file for file in found.files if file not in found.outside]
                    for _ in check_files(inside, self.rules, self.settings, means=replace(ways, cache=cache)):
                        # The cache has the report.
                        pass
            self.caches = stack.enter_context(closing(Caches(projects, self.settings, self.rules, cache)))
            self._each(found, projects)

    def _each(self, found: Discovery, projects: Projects) -> None:
        for file in found.files:
            if file in found.outside:
                sys.stderr.write(outside_text(file, "fix", self.notes))
                continue
            try:
                text = read(file)
            except Unreadable as error:
                self.tell(error.problem)
                continue
            outcome = self.outcome(file, text, projects.of(file))
            if outcome is not None:
                self.file(file, text, outcome)

    def file(self, path: str, text: Text, outcome: Outcome) -> None:
        """Write a file or print its diff."""
        if self.apply and outcome.applied:
            problem = write_fixed(path, text, outcome.text)
            if problem is not None:
                self.tell(problem)
                self.remaining += (*outcome.applied, *outcome.remaining)
                return
        elif outcome.applied:
            self.printed = True
            sys.stdout.writelines(shown(diff_lines(path, text, outcome.text), self.out, sys.stdout))
        self.note(path, text, outcome)

    def standard_input(self, name: str | None, force_exclude: bool) -> None:
        """Print standard input, fixed."""
        path = name or STANDARD_INPUT
        try:
            text = read_standard_input(path)
        except Unreadable as error:
            self.tell(error.problem)
            return
        excluded = force_exclude and name is not None and is_excluded(name, self.settings)
        fixed = text.text
        if not excluded:
            outcome = self.outcome(path, text, Projects(self.settings).of(name or "stdin.py"))
            if outcome is None:
                return
            fixed = outcome.text
            self.note(path, text, outcome)
        try:
            data = text.encode(fixed)
        except NotebookError as error:
            self.tell(Problem(path, f"{error.message}; it was left as it is", help=error.help))
            data = text.encode(text.text)
        sys.stdout.buffer.write(data)

    def outcome(self, path: str, text: Text, project: Project) -> Outcome | None:
        """A fixed text; None if it cannot be checked, which is reported."""
        outcome, problems = fix_text(path, text.text, project, self.check, self.safeties, line_length=self.line_length)
        for problem in (*broken_cells(path, text.notebook), *problems):
            self.tell(problem_in_cell(problem, text.notebook))
        if outcome is None or self.evidence is None:
            return outcome
        now = project.overlay({Path(path): outcome.text})
        left = check_source(Source(path, outcome.text), now, self.rules, self.settings, judge=self.evidence.judge)
        return replace(outcome, remaining=tuple(left.findings))

    def check(self, path: str, text: str, project: Project) -> Report:
        """The findings of `perflint check` in a text, with the fixes of those that the trace confirms."""
        if self.caches is not None and self.evidence is None and project.base is None:
            return self.caches.check(Source(path, text), project)
        judge = None if self.evidence is None else confirmed_by(self.evidence)
        return check_source(Source(path, text), project, self.rules, self.settings, judge=judge)

    def tell(self, problem: Problem) -> None:
        """Report a problem."""
        self.has_problems = True
        sys.stdout.flush()
        sys.stderr.write(problem_text(problem, self.notes))

    def note(self, path: str, text: Text, outcome: Outcome) -> None:
        """Count what came of a file, and say what was left out."""
        self.fixed += len(outcome.applied)
        self.changed += bool(outcome.applied)
        self.remaining += outcome.remaining
        if self.lists and outcome.applied:
            counts = Counter(f"{finding.code} {finding.name}" for finding in outcome.applied)
            fixed = ", ".join(f"{rule} × {number}" for rule, number in sorted(counts.items()))
            sys.stdout.flush()
            sys.stderr.write(f"{printable_path(path)}: {fixed}\n")
        for skipped in outcome.skipped:
            place = place_in_cell(path, skipped.finding.span, text.notebook)
            message = f"{place}: {skipped.finding.code} was not fixed: {skipped.reason}"
            sys.stderr.write(message_text("warning", message, None, self.notes))

    @property
    def leaves_findings(self) -> bool:
        """True if something is left to do, with what a diff would do."""
        return bool(self.remaining) or self.printed

    def summary(self) -> str:
        """The numbers of applied and remaining fixes, for standard error."""
        verb = "Would fix" if self.printed else "Fixed"
        done = f"{verb} {count(self.fixed, 'finding')} in {count(self.changed, 'file')}." if self.fixed else ""
        nothing = "Fixed nothing." if self.has_problems else "Nothing to fix."
        with_more, more = fixable_with_more(self.remaining, self.safeties)
        others = len(self.remaining) - with_more
        rest = f"{count(others, 'finding')} left." if others else ""
        return " ".join(part for part in (done or nothing, more, rest) if part) + "\n"


def confirmed_by(evidence: Evidence) -> Judge:
    """Gives findings the verdicts of traces that confirm them; the others have no verdict and no fix."""

    def judge(source: Source, findings: Sequence[Finding]) -> list[Finding]:
        kept = evidence.confirmed(source, findings)
        return [finding if finding.verdict is not None else replace(finding, fix=None) for finding in kept]

    return judge


def outside_text(file: str, do: str, style: Style) -> str:
    """The warning that a link in a folder leads out of it, and that its file stays as it is."""
    message = f"{file} leads to {os.path.realpath(file)}, outside of the folder to {do}: left as it is"
    return message_text("warning", message, f"name the file itself to {do} it", style)


def write_fixed(path: str, text: Text, fixed: str) -> Problem | None:
    """Write a file's new text over the one that was read, and say why it could not be."""
    try:
        write_file(path, text.encode(text.text), text.encode(fixed))
    except FileChangedError as error:
        return Problem(path, f"{error}; it was left as it is", help="run perflint again")
    except NotebookError as error:
        return Problem(path, f"{error.message}; it was left as it is", help=error.help)
    except UnicodeEncodeError:
        return Problem(path, f"the fixed text cannot be written as {text.encoding}; the file was left as it is")
    except OSError as error:
        return Problem(path, f"cannot be written: {error.strerror or error}")
    return None

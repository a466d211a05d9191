"""Find what slows PyTorch code down."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from perflint.cli import means, options
from perflint.config.settings import OutputFormat, Settings
from perflint.engine.active import active_rules
from perflint.engine.files import check_files, listing
from perflint.findings import Finding, Report
from perflint.output.formats import writer
from perflint.output.summary import count
from perflint.output.terminal import Style, printable_path
from perflint.output.writer import Writer, message_text, problem_text
from perflint.rules.registry import RuleSet
from perflint.source.files import STANDARD_INPUT, Discovery, discover, is_excluded
from perflint.source.text import Source

if TYPE_CHECKING:
    from perflint.engine.baseline import Baseline
    from perflint.engine.changes import Changes
    from perflint.tracer.verdicts import Evidence


def add_arguments(parser: ArgumentParser, output_format: OutputFormat | None = None) -> None:
    """The options of `perflint check`, with the format that counts if the command line has none."""
    options.add_paths(parser)
    options.add_selection(parser)
    options.add_trace(parser)
    means.add_arguments(parser)
    parser.add_argument("--watch", action="store_true")
    group = parser.add_argument_group("known findings")
    options.add_narrowing(group)
    group.add_argument("--no-ignores", action="store_true")
    group.add_argument("--add-ignore", action="store_true")
    group.add_argument("--reason", metavar="TEXT")
    group = parser.add_argument_group("output")
    options.add_output(group, output_format)
    group.add_argument("--statistics", action="store_true")
    group.add_argument("--exit-zero", action="store_true", help="exit with 0 though there are findings")
    options.add_colour(group)
    options.add_volume(group)
    group.add_argument("--show-files", action="store_true")
    group.add_argument("--show-settings", action="store_true")


def run(arguments: Namespace) -> int:
    """Check and report. 0 without findings, 1 with findings, 2 if a file could not be checked."""
    if arguments.watch:
        from perflint.cli.watch import watch

        return watch(arguments, _run_once)
    return _run_once(arguments)


def _run_once(arguments: Namespace) -> int:
    paths = options.paths(arguments)
    if arguments.show_settings:
        from perflint.cli.config import print_settings

        print_settings(options.stated(arguments, paths)[0])
        return 0
    began = time.monotonic()
    settings = options.settings(arguments, paths)
    rules = active_rules(settings)
    options.warn_without_rules(rules, settings, arguments)
    evidence = options.evidence(arguments)
    found = _discover(paths, settings, arguments)
    if arguments.show_files:
        sys.stdout.writelines(f"{printable_path(file)}\n" for file in found.files)
        return 2 if found.problems else 0
    if arguments.add_ignore or arguments.reason is not None:
        from perflint.cli.adding import add_ignores

        return add_ignores(found, rules, settings, arguments)
    with options.output(arguments, settings) as to:
        out = writer(settings.output_format, to)
        report = _check(found, rules, settings, evidence, out, arguments)
    options.tell_more(arguments, paths, count(len(rules.rules), "rule"), report, time.monotonic() - began)
    if report.problems:
        return 2
    return 1 if report.findings and not arguments.exit_zero else 0


def _discover(paths: list[str], settings: Settings, arguments: Namespace) -> Discovery:
    if paths != [STANDARD_INPUT]:
        return discover(paths, settings, arguments.force_exclude, notebooks=True)
    name = arguments.stdin_filename
    excluded = arguments.force_exclude and name is not None and is_excluded(name, settings)
    return Discovery() if excluded else Discovery(files=[STANDARD_INPUT])


def _check(
    found: Discovery,
    rules: RuleSet,
    settings: Settings,
    evidence: Evidence | None,
    out: Writer,
    arguments: Namespace,
) -> Report:
    style = options.style(arguments, sys.stderr)
    report = Report(shard=arguments.shard, listing=listing(found.files) if arguments.shard[1] > 1 else "")
    for folder in found.empty:
        help = "only *.py and *.ipynb files that nothing excludes are looked for; name a file to check it anyway"
        sys.stderr.write(message_text("warning", f"no Python files in {folder}", help, style))
    _tell(Report(problems=found.problems), report, style)
    judge = evidence.judge if evidence is not None else None
    baseline, changes = options.narrowing(arguments, settings, rules)
    sieves = [each for each in (baseline, changes) if each is not None]
    with means.means(arguments, out.writes_last) as ways:
        checked = check_files(found.files, rules, settings, arguments.stdin_filename, judge, ways)
        checked = _narrowed(checked, sieves)
        for source, part in _placed(checked if evidence is None else _by_cost(checked), out):
            out.file(source, part)
            _tell(part, report, style)
    if ways.timings is not None:
        sys.stdout.flush()
        sys.stderr.write(means.timings_text(ways.timings))
    if evidence is not None:
        sys.stdout.flush()
        sys.stderr.write(options.trace_warning(evidence, style))
        sys.stderr.write(options.experiments_text(evidence, arguments, style))
    if baseline is not None and evidence is None:
        sys.stdout.flush()
        sys.stderr.write(options.stale_warning(baseline, rules, settings, style))
    out.finish(report)
    return report


def _narrowed(
    checked: Iterable[tuple[Source, Report]], sieves: Sequence[Baseline | Changes]
) -> Iterator[tuple[Source, Report]]:
    """The reports without the findings that the baseline has, and without those on unchanged lines."""
    for source, part in checked:
        for sieve in sieves:
            sieve.sift(source, part)
        yield source, part


def _placed(checked: Iterable[tuple[Source, Report]], out: Writer) -> Iterator[tuple[Source, Report]]:
    """The reports with the places that the format has for findings of notebooks."""
    for source, part in checked:
        if source.notebook is None:
            yield source, part
            continue
        from perflint.output.notebooks import placed

        yield from placed(source, part, out.knows_cells)


def _by_cost(checked: Iterable[tuple[Source, Report]]) -> Iterator[tuple[Source, Report]]:
    """The reports with one finding each, what costs most first, and before them all else that they say."""
    from perflint.tracer.verdicts import by_cost

    findings: list[tuple[Finding, Source]] = []
    for source, part in checked:
        findings += [(finding, source) for finding in part.findings]
        part.findings = []
        yield source, part
    for finding, source in sorted(findings, key=lambda pair: by_cost(pair[0])):
        yield source, Report(findings=[finding])


def _tell(part: Report, report: Report, style: Style) -> None:
    if part.problems:
        # Keep the order of the two streams where both go to one place.
        sys.stdout.flush()
    for problem in part.problems:
        sys.stderr.write(problem_text(problem, style))
    report.add(part)

"""Find what slows PyTorch code down."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from perflint.cli import options
from perflint.config.settings import OutputFormat, Settings
from perflint.engine.active import active_rules
from perflint.engine.file import merge
from perflint.engine.files import check_files
from perflint.findings import Report
from perflint.output.terminal import Style
from perflint.output.writer import Writer, message_text, problem_text, writer
from perflint.rules.registry import RuleSet
from perflint.source.files import STANDARD_INPUT, Discovery, discover, is_excluded


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint check`."""
    options.add_paths(parser)
    options.add_selection(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output-format",
        choices=[format.value for format in OutputFormat],
        help="how to write findings (default: full)",
    )
    group.add_argument("--statistics", action="store_true", help="count the findings of each rule instead")
    group.add_argument("--exit-zero", action="store_true", help="exit with 0 though there are findings")
    options.add_colour(group)


def run(arguments: Namespace) -> int:
    """Check, and say what was found. 0 without findings, 1 with, 2 where a file could not be checked."""
    paths = options.paths(arguments)
    settings = options.settings(arguments, paths)
    rules = active_rules(settings)
    found = _discover(paths, settings, arguments)
    out = writer(settings.output_format, sys.stdout, options.style(arguments, sys.stdout), arguments.statistics)
    report = _check(found, rules, settings, out, arguments)
    if report.problems:
        return 2
    return 1 if report.findings and not arguments.exit_zero else 0


def _discover(paths: list[str], settings: Settings, arguments: Namespace) -> Discovery:
    if paths != [STANDARD_INPUT]:
        return discover(paths, settings, arguments.force_exclude)
    name = arguments.stdin_filename
    excluded = arguments.force_exclude and name is not None and is_excluded(name, settings)
    return Discovery() if excluded else Discovery(files=[STANDARD_INPUT])


def _check(found: Discovery, rules: RuleSet, settings: Settings, out: Writer, arguments: Namespace) -> Report:
    style = options.style(arguments, sys.stderr)
    report = Report()
    for folder in found.empty:
        help = "only *.py files that nothing excludes are looked for; name a file to check it anyway"
        sys.stderr.write(message_text("warning", f"no Python files in {folder}", help, style))
    _tell(Report(problems=found.problems), report, style)
    for source, part in check_files(found.files, rules, settings, arguments.stdin_filename):
        out.file(source, part)
        _tell(part, report, style)
    out.finish(report)
    return report


def _tell(part: Report, report: Report, style: Style) -> None:
    if part.problems:
        # Keep the order of the two streams where both go to one place.
        sys.stdout.flush()
    for problem in part.problems:
        sys.stderr.write(problem_text(problem, style))
    merge(report, part)

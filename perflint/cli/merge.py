"""Join the JSON reports of the parts of a run, such as those of `perflint check --shard`, into one report."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence

from perflint.cli import options
from perflint.config.errors import ConfigurationError
from perflint.config.outside import places
from perflint.config.settings import Options, OutputFormat, Settings, combine
from perflint.findings import Finding, Report, Silenced
from perflint.output.formats import writer
from perflint.output.merged import NotAReport, merged, place, read_report
from perflint.output.notebooks import from_cells, placed
from perflint.output.writer import problem_text
from perflint.source.files import PYTHON, is_below
from perflint.source.reading import NOTEBOOK, Unreadable, read
from perflint.source.text import Source

_LARGEST = 64 << 20
"""Bytes of a report, of about fifty thousand findings. Reading takes up to thirty times as much memory."""


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint merge`."""
    parser.add_argument("reports", nargs="+", metavar="REPORT")
    group = parser.add_argument_group("output")
    options.add_output(group)
    group.add_argument("--statistics", action="store_true")
    group.add_argument("--exit-zero", action="store_true", help="exit with 0 though there are findings")
    options.add_colour(group)
    group.add_argument("--quiet", "-q", action="store_true", help="findings and errors only, without a summary")
    options.add_settings(parser.add_argument_group("settings"))


def run(arguments: Namespace) -> int:
    """Write the report. 0 without findings, 1 with, 2 if a file could not be checked in one of the parts."""
    settings = _settings(arguments)
    reports = [_read(name) for name in arguments.reports]
    _require_parts(arguments.reports, reports)
    report = merged(reports)
    style = options.style(arguments, sys.stderr)
    for problem in report.problems:
        sys.stderr.write(problem_text(problem, style))
    with options.output(arguments, settings) as to:
        out = writer(settings.output_format, to)
        for source, part in _by_file(report, str(settings.root)):
            if source.notebook is None:
                out.file(source, part)
                continue
            for cell, found in placed(source, from_cells(part, source.notebook), out.knows_cells):
                out.file(cell, found)
        out.finish(report)
    if report.problems:
        return 2
    return 1 if report.findings and not arguments.exit_zero else 0


def _settings(arguments: Namespace) -> Settings:
    """The settings of the working directory, which have the format and the address of the rules."""
    found, root = places(["."], arguments.config or (), arguments.isolated)
    form = OutputFormat(arguments.output_format) if arguments.output_format else None
    return combine(*found, Options(output_format=form), root=root)


def _read(name: str) -> Report:
    try:
        with open(name, "rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise NotAReport(f"it is larger than {_LARGEST >> 20} MB; check in more parts")
        return read_report(data)
    except OSError as error:
        raise ConfigurationError(f"{name} cannot be read: {error.strerror or error}") from None
    except NotAReport as error:
        reason = str(error)
    help = "`perflint check --output-format json --output-file FILE` writes reports"
    raise ConfigurationError(f"{name} cannot be merged: {reason}", help)


def _require_parts(names: Sequence[str], reports: Sequence[Report]) -> None:
    """Raise ConfigurationError if two reports have findings of one file."""
    owners: dict[str, str] = {}
    for name, report in zip(names, reports, strict=True):
        for path in {finding.path for finding in _all(report)}:
            other = owners.setdefault(path, name)
            if other is not name:
                message = f"{other} and {name} both have findings of {path}"
                raise ConfigurationError(message, "merge reports of runs that have no file in common")


def _all(report: Report) -> Iterator[Finding]:
    yield from report.findings
    yield from (each.finding for each in report.silenced)


def _by_file(report: Report, root: str) -> Iterator[tuple[Source, Report]]:
    """The findings of each file with its text; with verdicts, each finding in the order of the report."""
    silenced: dict[str, list[Silenced]] = {}
    for each in report.silenced:
        silenced.setdefault(each.finding.path, []).append(each)
    findings: dict[str, list[Finding]] = {}
    for finding in report.findings:
        findings.setdefault(finding.path, []).append(finding)
    folders = [os.path.realpath(folder) for folder in (root, os.curdir)]
    sources = {path: _source(path, folders) for path in {**findings, **silenced}}
    has_verdicts = any(finding.verdict is not None for finding in report.findings)
    for path in sorted(sources, key=place):
        yield (
            sources[path],
            Report(findings=[] if has_verdicts else findings.get(path, []), silenced=silenced.get(path, [])),
        )
    for finding in report.findings if has_verdicts else ():
        yield sources[finding.path], Report(findings=[finding])


def _source(path: str, folders: Sequence[str]) -> Source:
    """The text of a file as it is now; empty if it is not there, or in none of the folders, or if it is not code.

    A report may come from a foreign job, and name any file of this machine, such as `.git/config` with a token.
    """
    real = os.path.realpath(path)
    suffix = os.path.splitext(real)[1].lower()
    if not any(is_below(real, folder) for folder in folders) or suffix not in (*PYTHON, NOTEBOOK):
        return Source(path, "")
    try:
        text = read(path)
        if not suffix and not text.text.startswith("#!"):
            return Source(path, "")
        return Source(path, text.text, notebook=text.notebook)
    except Unreadable:
        return Source(path, "")

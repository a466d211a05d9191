"""`perflint check --add-ignore`: comments that silence what a check would show."""

from __future__ import annotations

import sys
from argparse import Namespace

from perflint.cli import means, options
from perflint.cli.fix import outside_text, write_fixed
from perflint.config.errors import ConfigurationError
from perflint.config.settings import Settings
from perflint.engine.files import check_files
from perflint.engine.ignoring import with_ignores
from perflint.findings import Problem, Report
from perflint.output.notebooks import place_in_cell
from perflint.output.summary import count
from perflint.output.writer import message_text, problem_text
from perflint.rules.registry import RuleSet
from perflint.source.files import STANDARD_INPUT, Discovery
from perflint.source.reading import Unreadable, read
from perflint.source.text import Source


def add_ignores(found: Discovery, rules: RuleSet, settings: Settings, arguments: Namespace) -> int:
    """Write the comments. 0 if all findings are silenced, 1 if some are not, 2 if a file cannot be checked or written.

    Raises ConfigurationError for options that do not fit.
    """
    reason = _reason(found, settings, arguments)
    style = options.style(arguments, sys.stderr)
    total = Report(problems=list(found.problems))
    written, silenced, left = 0, 0, 0
    baseline, changes = options.narrowing(arguments, settings, rules)
    with means.means(arguments) as ways:
        for source, part in check_files(found.files, rules, settings, means=ways):
            total.problems += part.problems
            for sieve in (baseline, changes):
                if sieve is not None:
                    sieve.sift(source, part)
            if source.path in found.outside:
                if part.findings:
                    sys.stderr.write(outside_text(source.path, "change", style))
                left += len(part.findings)
                continue
            text, unsilenced = with_ignores(source, part.findings, reason)
            left += len(unsilenced)
            for finding in unsilenced:
                place = place_in_cell(finding.path, finding.span, source.notebook)
                message = f"{place}: {finding.code} was not silenced: no comment can stand there"
                sys.stderr.write(message_text("warning", message, None, style))
            if text != source.text:
                problem = _write(source, text)
                if problem is not None:
                    total.problems.append(problem)
                    continue
                written += 1
                silenced += len(part.findings) - len(unsilenced)
    for problem in total.problems:
        sys.stderr.write(problem_text(problem, style))
    sys.stdout.write(f"Silenced {count(silenced, 'finding')} in {count(written, 'file')}.\n")
    return 2 if total.problems else 1 if left else 0


def _write(source: Source, text: str) -> Problem | None:
    """Write a new text of a file that was checked, and give the problem if it cannot be done."""
    try:
        now = read(source.path)
    except Unreadable as error:
        return error.problem
    if now.text != source.text:
        return Problem(source.path, "changed while it was checked; it was left as it is", help="run perflint again")
    return write_fixed(source.path, now, text)


def _reason(found: Discovery, settings: Settings, arguments: Namespace) -> str:
    if not arguments.add_ignore:
        raise ConfigurationError("`--reason` needs `--add-ignore`")
    if found.files == [STANDARD_INPUT]:
        raise ConfigurationError("`--add-ignore` cannot write standard input", "name files or folders")
    reason = " ".join((arguments.reason or "").split())
    if " # " in f" {reason} " or not reason.isprintable():
        raise ConfigurationError("the reason of a comment must not hold ` # ` or control characters")
    if settings.require_reasons and not reason:
        raise ConfigurationError("the settings require reasons", '`--add-ignore --reason "…"`')
    return reason

"""Options that several verbs share, and the settings that they make."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from perflint.config.errors import ConfigurationError
from perflint.config.outside import places
from perflint.config.patterns import pattern_fault
from perflint.config.pyproject import line_length as stated_line_length
from perflint.config.selection import Selection
from perflint.config.settings import Options, OutputFormat, Profile, Settings, Version, combine, parse_version
from perflint.engine.active import active_rules
from perflint.findings import Confidence, Report, Safety, Severity, up_to
from perflint.frozen import replace
from perflint.output.summary import count
from perflint.output.terminal import Style, printable, wants_colours, wants_links
from perflint.output.writer import Output, message_text
from perflint.rules.registry import RuleSet
from perflint.source.files import STANDARD_INPUT
from perflint.source.writing import written

if TYPE_CHECKING:
    from argparse import _ArgumentGroup

    from perflint.engine.baseline import Baseline
    from perflint.engine.changes import Changes
    from perflint.tracer.verdicts import Evidence


def add_paths(parser: ArgumentParser) -> None:
    """Add the options that choose files."""
    parser.add_argument("paths", nargs="*", metavar="PATH")
    group = parser.add_argument_group("files")
    group.add_argument("--stdin-filename", metavar="PATH")
    group.add_argument("--exclude", action="append", type=_patterns, metavar="PATTERNS")
    group.add_argument("--extend-exclude", action="append", type=_patterns, metavar="PATTERNS")
    group.add_argument("--force-exclude", action="store_true")


def add_selectors(parser: ArgumentParser) -> _ArgumentGroup:
    """Add the options that choose rules, and return their group."""
    group = parser.add_argument_group(
        "rules", "RULES: codes (TPF101), beginnings of codes (TPF1), names (scalar-read-in-loop) or ALL, with commas."
    )
    group.add_argument("--select", action="append", type=_list, metavar="RULES")
    group.add_argument("--extend-select", action="append", type=_list, metavar="RULES")
    group.add_argument("--ignore", action="append", type=_list, metavar="RULES")
    return group


def add_selection(parser: ArgumentParser) -> None:
    """Add the options that choose rules and findings."""
    group = add_selectors(parser)
    group.add_argument("--profile", choices=[profile.value for profile in Profile])
    group.add_argument("--torch-version", type=_version, metavar="X.Y")
    group.add_argument("--min-severity", choices=[each.value for each in Severity])
    group.add_argument("--min-confidence", choices=[each.value for each in Confidence])
    add_settings(parser.add_argument_group("settings"))


def add_narrowing(group: _ArgumentGroup) -> None:
    """Add the options that leave out old findings."""
    group.add_argument(
        "--baseline", metavar="FILE", help="do not show the findings in this file, which `perflint baseline` writes"
    )
    group.add_argument("--since", metavar="REV")
    group.add_argument("--effects", action="store_true")


def narrowing(arguments: Namespace, settings: Settings, rules: RuleSet) -> tuple[Baseline | None, Changes | None]:
    """The baseline, and the lines changed since a revision, if the user asks for them. Raises ConfigurationError."""
    baseline, changes = None, None
    if settings.baseline is not None:
        from perflint.engine.baseline import read_baseline

        baseline = read_baseline(Path(settings.root, settings.baseline))
    if arguments.since is not None:
        from perflint.engine.changes import Changes

        effects = None
        if arguments.effects:
            from perflint.engine.effects import Effects

            effects = Effects(settings, rules)
        changes = Changes(arguments.since, effects)
    elif arguments.effects:
        raise ConfigurationError("`--effects` needs `--since REV`")
    return baseline, changes


def stale_warning(baseline: Baseline, rules: RuleSet, settings: Settings, style: Style) -> str:
    """The warning that entries of the baseline match no finding any more; empty if there are none."""
    count = baseline.stale({rule.code for rule in rules.rules}) if settings.profile is baseline.profile else 0
    if not count:
        return ""
    entries = "1 entry of the baseline matches" if count == 1 else f"{count} entries of the baseline match"
    return message_text("warning", f"{entries} no finding any more", "`perflint baseline` removes them", style)


def add_settings(group: _ArgumentGroup) -> None:
    """Add the options for other sources of settings."""
    group.add_argument("--config", action="append", metavar="KEY=VALUE|FILE")
    group.add_argument("--isolated", action="store_true")


def add_volume(group: _ArgumentGroup) -> None:
    """Add the options for the amount of output besides findings."""
    either = group.add_mutually_exclusive_group()
    either.add_argument("--quiet", "-q", action="store_true", help="findings and errors only, without a summary")
    either.add_argument("--verbose", "-v", action="store_true")


def tell_more(arguments: Namespace, paths: Sequence[str], rules: str, report: Report, seconds: float) -> None:
    """With `--verbose`, write the settings that are not the default and the time of the run to standard error."""
    if not arguments.verbose:
        return
    from perflint.config.effective import DEFAULT, effective

    sys.stdout.flush()
    for each in effective(stated(arguments, paths)[0]):
        if each.origins != (DEFAULT,):
            sys.stderr.write(f"{printable(each.toml())}\n")
    sys.stderr.write(f"Checked {report.lines:,} line{'s' * (report.lines != 1)} with {rules} in {seconds:.2f} s.\n")


def warn_without_rules(rules: RuleSet, settings: Settings, arguments: Namespace) -> None:
    """Warn on standard error if no rule is selected, or none of those that are holds for the version of torch."""
    if rules.rules:
        return
    message = "no rule is selected"
    help = "`--ignore` wins over a `--select` that is as specific; `perflint rules` lists all rules"
    if active_rules(replace(settings, torch_version=None)).rules:
        message = f"no selected rule holds for torch {'.'.join(map(str, settings.torch_version or ()))}"
        help = "`perflint config torch-version` says which place sets it"
    sys.stderr.write(message_text("warning", message, help, style(arguments, sys.stderr)))


def add_trace(parser: ArgumentParser) -> None:
    """Add the options for traces."""
    group = parser.add_argument_group("trace")
    group.add_argument(
        "--trace",
        action="append",
        metavar="FILE",
        help="compare findings with a recording of `perflint trace` or a profile of torch.profiler; may be given again",
    )
    group.add_argument(
        "--experiments",
        action="store_true",
        help="also propose the changes that experiments of the trace found faster: torch.compile, TF32, channels_last",
    )


def evidence(arguments: Namespace) -> Evidence | None:
    """The facts of the traces that `--trace` names, or None without any. Raises TraceError."""
    if not arguments.trace:
        if arguments.experiments:
            help = "`perflint trace --experiments SCRIPT` records one; then name it with `--trace FILE`"
            raise ConfigurationError("`--experiments` needs a trace", help)
        return None
    from perflint.tracer.file import read_trace
    from perflint.tracer.verdicts import Evidence

    return Evidence((read_trace(Path(file)) for file in arguments.trace), changes=arguments.experiments)


def experiments_text(evidence: Evidence, arguments: Namespace, style: Style) -> str:
    """The changes of experiments that are not proposed, each with its reason; empty without `--experiments`."""
    if not arguments.experiments:
        return ""
    texts = [*evidence.unwritten, *(f"an experiment was not done: {reason}" for reason in evidence.untried())]
    return "".join(message_text("note", text, None, style) for text in dict.fromkeys(texts))


def trace_warning(evidence: Evidence, style: Style) -> str:
    """The warnings about what the traces cannot show; empty if there are none."""
    limits = "".join(message_text("note", limit, None, style) for limit in evidence.limits)
    return _warning(evidence, style) + limits


def _warning(evidence: Evidence, style: Style) -> str:
    """The warning that a trace is of other or changed files, or of a run without a GPU; empty if there is none."""
    if not evidence.is_of_these:
        help = "check the files that ran, from the folder in which they were traced or its copy"
        return message_text("warning", "the trace is of a program that used none of these files", help, style)
    if evidence.is_blind:
        from perflint.tracer.trace import BLIND, BLIND_HELP

        return message_text("warning", f"the trace holds only the lines that ran: {BLIND}", BLIND_HELP, style)
    if evidence.has_no_gpu:
        help = "`perflint trace --simulate` records the waits that a GPU would show"
        return message_text("warning", "the trace is of a run without a GPU, so it refutes no wait", help, style)
    if not evidence.stale:
        return ""
    first, more = evidence.stale[0], len(evidence.stale) - 1
    files = f"{first} and {count(more, 'other file')} have" if more else f"{first} has"
    help = "lines that are the same were found again, the others have no verdict; trace again for those"
    return message_text("warning", f"{files} changed since the trace", help, style)


def add_fixing(parser: ArgumentParser) -> _ArgumentGroup:
    """Add the options that choose and write fixes, and return their group."""
    group = parser.add_argument_group("fixing")
    group.add_argument("--apply", action="store_true", help="write the files instead of printing a diff")
    group.add_argument("--unsafe-fixes", action="store_true")
    group.add_argument("--risky-fixes", action="store_true")
    group.add_argument("--fixable", action="append", type=_list, metavar="RULES")
    group.add_argument("--unfixable", action="append", type=_list, metavar="RULES")
    return group


def safeties(arguments: Namespace) -> tuple[Safety, ...]:
    """The safeties of the fixes that are asked for."""
    if arguments.risky_fixes:
        return up_to(Safety.RISKY)
    return up_to(Safety.UNSAFE if arguments.unsafe_fixes else Safety.SAFE)


def add_colour(parser: ArgumentParser | _ArgumentGroup) -> None:
    """Add `--color`."""
    parser.add_argument("--color", choices=["auto", "always", "never"], default="auto")


def add_output(group: _ArgumentGroup, format: OutputFormat | None = None) -> None:
    """Add the options for the format and the file of findings.

    `format` is the default of a verb that does not read the setting.
    """
    group.add_argument(
        "--output-format",
        choices=[each.value for each in OutputFormat],
        default=format.value if format is not None else None,
        help=f"how to write findings (default: {(format or OutputFormat.FULL).value})",
    )
    group.add_argument("--output-file", metavar="FILE")


@contextmanager
def output(arguments: Namespace, settings: Settings) -> Iterator[Output]:
    """The place that `--output-file` asks for. A file is replaced when all is written. Raises ConfigurationError."""
    name: str | None = arguments.output_file
    to = Output(
        sys.stdout,
        style(arguments, sys.stdout),
        sys.stderr,
        style(arguments, sys.stderr),
        statistics=arguments.statistics,
        quiet=arguments.quiet,
        rule_url=settings.rule_url,
        settings=settings,
    )
    if name is None:
        yield to
        return
    try:
        with written(Path(name)) as out:
            yield replace(to, out=out, style=Style(arguments.color == "always"))
    except OSError as error:
        if error.filename is None:
            raise
        message = f"`--output-file {name}` cannot be written: {error.strerror or error}"
        help = "the folder must exist" if isinstance(error, FileNotFoundError) else None
        raise ConfigurationError(message, help) from None


def style(arguments: Namespace, stream: TextIO) -> Style:
    """The style that `--color` asks for on a stream."""
    return Style(wants_colours(arguments.color, stream), arguments.color != "never" and wants_links(stream))


def paths(arguments: Namespace) -> list[str]:
    """The paths to look at. Raises ConfigurationError where standard input is mixed with others."""
    given: list[str] = arguments.paths or ["."]
    if STANDARD_INPUT in given and len(given) > 1:
        raise ConfigurationError("`-` cannot stand beside other paths", "check standard input by itself")
    if arguments.stdin_filename is not None and STANDARD_INPUT not in given:
        raise ConfigurationError("`--stdin-filename` needs `-`", "perflint check - --stdin-filename PATH")
    return given


def settings(arguments: Namespace, paths: Sequence[str]) -> Settings:
    """The command line over the environment over files over the defaults. Raises ConfigurationError."""
    found, root = stated(arguments, paths)
    return combine(*found, root=root)


def stated(arguments: Namespace, paths: Sequence[str]) -> tuple[list[Options], str | None]:
    """The options of all places, later ones win, and the root of the project. Raises ConfigurationError."""
    found, root = places(_places(arguments, paths), arguments.config or (), arguments.isolated)
    return [*found, _options(arguments)], root


def line_length(arguments: Namespace, paths: Sequence[str]) -> int | None:
    """The line length that the project states for its formatter; None if it states none, or with `--isolated`."""
    return None if arguments.isolated else stated_line_length(_places(arguments, paths))


def _places(arguments: Namespace, paths: Sequence[str]) -> list[str]:
    """The paths, with the name of standard input."""
    return [arguments.stdin_filename or "." if path == STANDARD_INPUT else path for path in paths]


def selection(arguments: Namespace) -> Selection:
    """The rules that the command line selects. Raises ConfigurationError if `--select` is empty."""
    select = _joined(arguments.select)
    if select == ():
        raise ConfigurationError("`--select` names no rule", "leave it out to select all rules")
    return Selection(
        select, _joined(arguments.ignore) or (), _joined(arguments.extend_select) or (), origin="the command line"
    )


def _options(arguments: Namespace) -> Options:
    output_format = getattr(arguments, "output_format", None)
    baseline: str | None = getattr(arguments, "baseline", None)
    least: str | None = getattr(arguments, "min_severity", None)
    sure: str | None = getattr(arguments, "min_confidence", None)
    return Options(
        selection=selection(arguments),
        profile=Profile(arguments.profile) if arguments.profile else None,
        torch_version=arguments.torch_version,
        exclude=_joined(getattr(arguments, "exclude", None)),
        extend_exclude=_joined(getattr(arguments, "extend_exclude", None)) or (),
        output_format=OutputFormat(output_format) if output_format else None,
        # Paths of the settings are relative to the project, and those of the command line to the working directory.
        baseline=os.path.abspath(baseline) if baseline is not None else None,
        min_severity=Severity(least) if least else None,
        min_confidence=Confidence(sure) if sure else None,
        respect_comments=False if getattr(arguments, "no_ignores", False) else None,
        fixable=_joined(getattr(arguments, "fixable", None)),
        unfixable=_joined(getattr(arguments, "unfixable", None)) or (),
    )


def _joined(lists: list[tuple[str, ...]] | None) -> tuple[str, ...] | None:
    return None if lists is None else tuple(item for items in lists for item in items)


def _list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _patterns(text: str) -> tuple[str, ...]:
    patterns = _list(text)
    for pattern in patterns:
        fault = pattern_fault(pattern)
        if fault is not None:
            raise ArgumentTypeError(f"`{pattern}` is not a pattern of paths: {fault}")
    return patterns


def _version(text: str) -> Version:
    try:
        return parse_version(text)
    except ConfigurationError as error:
        raise ArgumentTypeError(f"{error.message}: {error.help}") from None

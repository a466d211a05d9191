"""Show traces: as a page, as a summary, or for a trace viewer."""

from __future__ import annotations

import io
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perflint import __version__
from perflint.cli import options
from perflint.config.errors import ConfigurationError
from perflint.frozen import replace
from perflint.source.writing import whole
from perflint.tracer.events import SourceFile
from perflint.tracer.file import read_trace
from perflint.tracer.trace import Trace

if TYPE_CHECKING:
    from perflint.output.report.checked import Checked

FORMATS = {"html": "perflint-report.html", "chrome": "perflint-chrome.json", "text": "-"}
"""The formats, and where each is written to."""
_EXIT_CODES = "Exit codes: 0 written; 2 for a fault in the usage, a file or perflint."
STANDARD_OUTPUT = "-"


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint report`."""
    parser.epilog = _EXIT_CODES
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=list(FORMATS), default="html")
    group.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help=f"- for standard output (default: {', '.join(f'{kind}: {name}' for kind, name in FORMATS.items())})",
    )
    options.add_colour(group)
    group = parser.add_argument_group("source", "What the page shows of the code, and what the linter says of it.")
    group.add_argument("--root", metavar="FOLDER", help="where the traced files are, if not where they were traced")
    group.add_argument("--check", action="append", metavar="PATH")
    group.add_argument("--no-check", action="store_true")
    options.add_selection(parser)


def run(arguments: Namespace) -> int:
    """Read traces and show them. Raises ConfigurationError for what cannot be read or written."""
    if arguments.check and arguments.no_check:
        raise ConfigurationError("`--check` and `--no-check` exclude each other", "leave one of them out")
    if arguments.root is not None and not os.path.isdir(arguments.root):
        raise ConfigurationError(f"there is no folder {arguments.root}", "`--root` is where the traced files are")
    output = arguments.output or FORMATS[arguments.format]
    check_output(output, arguments.traces)
    traces = [(name, _rooted(read_trace(Path(name)), arguments.root)) for name in arguments.traces]
    if len(traces) > 1:
        traces.sort(key=lambda pair: pair[1].header.rank)
    make = {"html": _page, "chrome": _chrome, "text": _text}[arguments.format]
    write_output(output, make(traces, arguments))
    return 0


def check_output(output: str, traces: Sequence[str]) -> None:
    """Raise ConfigurationError where writing would harm."""
    if output == STANDARD_OUTPUT:
        return
    if any(os.path.realpath(output) == os.path.realpath(name) for name in traces):
        raise ConfigurationError(f"{output} is a trace to read", "name another file with `--output`")
    folder = Path(output).absolute().parent
    if not folder.is_dir():
        raise ConfigurationError(f"there is no folder {folder} to write to", "create it, or name another `--output`")


def _rooted(trace: Trace, root: str | None) -> Trace:
    """The trace with the folder in which its files are now: that of its run, else the working directory."""
    known = root or (trace.header.root if os.path.isdir(trace.header.root) else os.getcwd())
    return replace(trace, header=replace(trace.header, root=os.path.abspath(known)))


def _text(traces: Sequence[tuple[str, Trace]], arguments: Namespace) -> str:
    from perflint.output.ranks import ranks_text
    from perflint.output.trace import trace_text
    from perflint.tracer.ranks import are_ranks, join_ranks

    style = options.style(arguments, sys.stdout)
    texts = [trace_text(trace, None, style) for _, trace in traces]
    recorded = [trace for _, trace in traces]
    if are_ranks(recorded):
        texts.append(ranks_text(join_ranks(recorded), style))
    return "\n".join(texts)


def _chrome(traces: Sequence[tuple[str, Trace]], arguments: Namespace) -> str:
    from perflint.output.chrome import write_chrome

    out = io.StringIO()
    if not write_chrome([(os.path.basename(name), trace) for name, trace in traces], out):
        help = "record one with `perflint trace --window 3`, on a GPU and with enough steps"
        raise ConfigurationError("there is no timeline in what was recorded", help)
    return out.getvalue()


def _page(traces: Sequence[tuple[str, Trace]], arguments: Namespace) -> str:
    from perflint.output.report.page import Recorded, report_page

    recorded = [Recorded(os.path.basename(name), trace, Path(trace.header.root)) for name, trace in traces]
    checked = None if arguments.no_check else _checked([trace for _, trace in traces], arguments)
    return report_page(recorded, __version__, checked)


def _checked(traces: Sequence[Trace], arguments: Namespace) -> Checked | None:
    """The findings of the linter in the traced files; None if no traced file is available."""
    from perflint.config.settings import Profile
    from perflint.engine.active import active_rules
    from perflint.engine.files import check_files
    from perflint.engine.profiles import claims, shows
    from perflint.findings import Finding
    from perflint.output.report.checked import Checked
    from perflint.source.files import discover
    from perflint.tracer.verdicts import Evidence, by_cost

    paths = arguments.check or _traced(traces)
    if not paths:
        return None
    settings = options.settings(arguments, paths)
    found = discover(paths, settings, False)
    evidence = Evidence(traces)
    findings: list[Finding] = []
    problems = list(found.problems)
    # What a trace refutes is what a reader wants to know, too.
    everything = replace(settings, profile=Profile.AUDIT)
    for _, report in check_files(found.files, active_rules(settings), everything, None, evidence.judge):
        problems += report.problems
        findings += [
            finding
            for finding in report.findings
            if claims(settings.profile, finding) or shows(settings.profile, finding)
        ]
    return Checked(
        tuple(sorted(findings, key=by_cost)),
        tuple(evidence.stale),
        tuple(f"{problem.path}: {problem.message}" if problem.path else problem.message for problem in problems),
        traces[0].header.root,
        tuple(arguments.traces),
    )


def _traced(traces: Sequence[Trace]) -> list[str]:
    """The traced files below the root, as far as they are there."""
    files = {
        os.path.join(trace.header.root, source.file): None
        for trace in traces
        for source in trace.of(SourceFile)
        if not os.path.isabs(source.file) and source.file.endswith(".py")
    }
    return [path for path in files if os.path.isfile(path)]


def write_output(output: str, text: str) -> None:
    """Write a text whole or not at all. Raises ConfigurationError."""
    if output == STANDARD_OUTPUT:
        sys.stdout.write(text)
        return
    write_whole(output, text.encode(), output in FORMATS.values())
    sys.stderr.write(f"Written to {output}.\n")


def write_whole(output: str, contents: bytes, is_default: bool) -> None:
    """Write a file whole or not at all. Raises ConfigurationError."""
    # The user did not choose the default name. A link of that name may lead anywhere, so it is replaced.
    target = Path(output if is_default else os.path.realpath(output))
    try:
        with whole(target) as file:
            file.write(contents)
    except OSError as error:
        help = "name another file with `--output`"
        raise ConfigurationError(f"{output} cannot be written: {error.strerror or error}", help) from None

"""Compare two traces: the time of a step, its idle time, the lines that wait and the work on the GPU."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from perflint import __version__
from perflint.cli import options
from perflint.cli.report import STANDARD_OUTPUT, check_output, write_output
from perflint.output.compare.comparison import Comparison, compare
from perflint.output.compare.document import comparison_document
from perflint.output.compare.text import comparison_text
from perflint.output.terminal import Style
from perflint.tracer.file import read_trace

_PAGE = "perflint-compare.html"
_EXIT_CODES = "Exit codes: 0 compared; 2 for a fault in the usage, a file or perflint."


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint compare`."""
    parser.epilog = _EXIT_CODES
    parser.add_argument("before", metavar="BEFORE")
    parser.add_argument("after", metavar="AFTER")
    parser.add_argument("--output-format", choices=["text", "json", "html"], default="text", help="(default: text)")
    parser.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help=f"- for standard output (default: -, html: {_PAGE})",
    )
    options.add_colour(parser)


def run(arguments: Namespace) -> int:
    """Compare. Raises ConfigurationError for what cannot be read or written."""
    names = (arguments.before, arguments.after)
    output = arguments.output or (_PAGE if arguments.output_format == "html" else STANDARD_OUTPUT)
    check_output(output, names)
    found = compare(read_trace(Path(arguments.before)), read_trace(Path(arguments.after)))
    write_output(output, _text(found, names, arguments, output))
    return 0


def _text(found: Comparison, names: tuple[str, str], arguments: Namespace, output: str) -> str:
    """The comparison in the format that is asked for."""
    if arguments.output_format == "json":
        return json.dumps(comparison_document(found, names), indent=2) + "\n"
    if arguments.output_format == "html":
        from perflint.output.compare.page import comparison_page

        return comparison_page(found, (os.path.basename(names[0]), os.path.basename(names[1])), __version__)
    style = options.style(arguments, sys.stdout) if output == STANDARD_OUTPUT else Style(arguments.color == "always")
    return comparison_text(found, names, style)

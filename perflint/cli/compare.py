"""Compare two traces: the time of a step, its idle time, the lines that wait and the work on the GPU."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from perflint.cli import options
from perflint.output.compare.comparison import compare
from perflint.output.compare.document import comparison_document
from perflint.output.compare.text import comparison_text
from perflint.tracer.file import read_trace

_EXIT_CODES = "Exit codes: 0 compared; 2 for a fault in the usage, a file or perflint."


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint compare`."""
    parser.epilog = _EXIT_CODES
    parser.add_argument("before", metavar="BEFORE", help="what `perflint trace` wrote before a change")
    parser.add_argument("after", metavar="AFTER", help="what it wrote after the change")
    parser.add_argument("--output-format", choices=["text", "json"], default="text", help="(default: text)")
    options.add_colour(parser)


def run(arguments: Namespace) -> int:
    """Compare. Raises TraceError for what cannot be read."""
    names = (arguments.before, arguments.after)
    found = compare(read_trace(Path(arguments.before)), read_trace(Path(arguments.after)))
    if arguments.output_format == "json":
        json.dump(comparison_document(found, names), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(comparison_text(found, names, options.style(arguments, sys.stdout)))
    return 0

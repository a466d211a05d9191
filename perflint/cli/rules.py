"""List all rules."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace

from perflint.cli import options
from perflint.output.pages import facts, table
from perflint.rules.registry import all_rules


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint rules`."""
    parser.add_argument("--output-format", choices=["text", "json"], default="text", help="(default: text)")
    options.add_colour(parser)


def run(arguments: Namespace) -> int:
    """Print a line for each rule."""
    if arguments.output_format == "json":
        json.dump([facts(rule) for rule in all_rules()], sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(table(all_rules(), options.style(arguments, sys.stdout)))
    return 0

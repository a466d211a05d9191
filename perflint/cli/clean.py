"""Remove the cache."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from perflint.cli import options
from perflint.engine.cache.places import clean, default_folder
from perflint.output.summary import count


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint clean`."""
    parser.add_argument("--cache-dir", metavar="DIR", help="the folder (default: PERFLINT_CACHE_DIR, or the user's)")
    options.add_colour(parser)


def run(arguments: Namespace) -> int:
    """Remove the folder, if perflint made it, and say so."""
    folder = Path(arguments.cache_dir) if arguments.cache_dir else default_folder()
    sys.stderr.write(f"removed the results of {count(clean(folder), 'project')} from {folder}\n")
    return 0

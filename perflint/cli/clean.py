"""Remove what the cache has about the project of the working directory."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from perflint.cli import options
from perflint.config.settings import Settings
from perflint.engine.cache.places import clean, clean_project, default_folder
from perflint.engine.projects import Projects
from perflint.output.summary import count
from perflint.source.files import discover


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint clean`."""
    parser.add_argument("--cache-dir", metavar="DIR", help="the folder (default: PERFLINT_CACHE_DIR, or the user's)")
    parser.add_argument("--all", action="store_true", help="remove the whole cache, with the results of all projects")
    options.add_colour(parser)


def run(arguments: Namespace) -> int:
    """Remove files that perflint made, and say so."""
    folder = Path(arguments.cache_dir) if arguments.cache_dir else default_folder()
    if arguments.all:
        done = f"removed the results of {count(clean(folder), 'project')}"
    else:
        settings = Settings()
        projects = Projects(settings)
        # Without a marker, folders below this one are projects of their own.
        roots = {projects.top_of(file) for file in ("here.py", *discover(["."], settings).files)}
        done = f"removed {count(sum(clean_project(folder, root) for root in roots), 'file')} about this project"
    sys.stderr.write(f"{done} from {folder}\n")
    return 0

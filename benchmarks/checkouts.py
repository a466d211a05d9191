"""The repositories of public programs, checked out at their commits."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def add_repositories_option(parser: argparse.ArgumentParser) -> None:
    """`--repositories PATTERN`, for copies that lie on this machine."""
    parser.add_argument(
        "--repositories",
        default="https://github.com/{owner}/{name}",
        metavar="PATTERN",
        help="where the repositories are: an address or a folder with {owner} and {name} in it (default: %(default)s)",
    )


def check_out(entry: dict[str, Any], into: Path, repositories: str, is_wanted: Callable[[str], bool]) -> None:
    """Take the files that are wanted out of the repository of an entry, at its commit, into a new folder."""
    owner, name = entry["repository"].split("/")
    repository = repositories.format(owner=owner, name=name)
    into.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="clone-") as clone:
        if "://" in repository:
            subprocess.run(["git", "clone", "-q", "--bare", "--filter=blob:none", repository, clone], check=True)
            repository = clone
        git = ["git", f"--git-dir={repository}"]
        listing = [*git, "ls-tree", "-rz", "--name-only", entry["commit"]]
        names = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\0")
        command = [*git, "archive", entry["commit"], *(name for name in names if is_wanted(name))]
        archive = subprocess.run(command, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(into)], input=archive, check=True)

"""The git repository that a file is in."""

from __future__ import annotations

import os


def repository_of(folder: str) -> str | None:
    """The root of the repository around a folder; None if it is in none."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder

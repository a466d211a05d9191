"""The project around a file: found by its markers, listed once, and the same whichever file is asked about first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from perflint.config.settings import Settings
from perflint.semantics.project import Project
from perflint.source.files import below

_MARKERS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")
"""The entries of a folder that make it the root of a project; those of a repository decide over the others."""
_REPOSITORY = frozenset(_MARKERS[:2])
_MOST_FILES = 20_000
"""Files of a project that are looked at; a folder with more of them is treated as incomplete."""


class Projects:
    """The projects that the files of one run belong to."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: dict[Path, Project] = {}
        self._roots: dict[Path, Path | None] = {}

    def of(self, path: str | Path) -> Project:
        """The project of a file, which need not exist."""
        folder = Path(path).absolute().parent
        if folder not in self._roots:
            self._roots[folder] = root_of(folder)
        root = self._roots[folder]
        # Without a marker, a folder may hold anything: only the package around the file belongs to it.
        key = root or _package(folder)
        if key not in self._known:
            self._known[key] = Project(self._files(key, is_marked=root is not None), _MOST_FILES)
        return self._known[key]

    def _files(self, folder: Path, is_marked: bool) -> Iterator[Path]:
        """The files of the project, found when they are asked for."""
        if is_marked or os.path.isfile(folder / "__init__.py"):
            yield from map(Path, below(str(folder), self._settings))
            return
        for path in _entries(folder):
            if os.path.isfile(path / "__init__.py"):
                yield from map(Path, below(str(path), self._settings))
            elif path.suffix == ".py":
                yield path


def root_of(folder: Path) -> Path | None:
    """The root of the repository that a folder is in, else the nearest folder with a marker; None if there is none."""
    nearest: Path | None = None
    for each in (folder, *folder.parents):
        found = [name for name in _MARKERS if os.path.lexists(each / name)]
        if not _REPOSITORY.isdisjoint(found):
            return each
        if found and nearest is None:
            nearest = each
    return nearest


def _package(folder: Path) -> Path:
    """The folder of the outermost package that a folder belongs to, or the folder itself."""
    found = folder
    for each in (folder, *folder.parents):
        if not os.path.isfile(each / "__init__.py"):
            break
        found = each
    return found


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        # It is reported when a file in it is read.
        return []

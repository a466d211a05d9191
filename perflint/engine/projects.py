"""The project around a file: found by its markers, listed once, and the same whichever file is asked about first."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from perflint.config.settings import Settings
from perflint.semantics.declared import Declared
from perflint.semantics.project import Project
from perflint.source.files import below, may_name_code

_MARKERS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")
"""The entries of a folder that make it the root of a project; those of a repository decide over the others."""
_REPOSITORY = frozenset(_MARKERS[:2])
_SIGNS = (".gitignore", "requirements.txt", "environment.yml", "LICENSE", "LICENSE.md", "LICENSE.txt")
"""The entries of a folder that make it the root of a project where no folder around it has a marker."""
_INSTALLED = (".dist-info", ".egg-info")
"""The ends of names that show that a folder holds installed packages, which do not belong together."""
_MOST_FOLDERS = 4
"""The folders above a file that are searched for scripts."""
_MOST_FILES = 20_000
"""Files of a project that are looked at; a folder with more of them is treated as incomplete."""
_MOST_UNMARKED = 2_000
"""The same for a folder that nothing marks as a project: it may be one for downloads, or a home."""


class Projects:
    """The projects that the files of one run belong to."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: dict[Path, Project] = {}
        self._roots: dict[Path, Path | None] = {}
        self._marked: set[Path] = set()

    def of(self, path: str | Path) -> Project:
        """The project of a file, which need not exist."""
        return self.at(self.top_of(path))

    def top_of(self, path: str | Path) -> Path:
        """The folder of the project of a file, which stands for the project."""
        folder = Path(path).absolute().parent
        if folder not in self._roots:
            self._roots[folder] = root_of(folder)
        root = self._roots[folder]
        # Without a marker, a folder may hold anything: the package around the file, and scripts and packages beside it.
        key = root or _top(folder)
        if root is not None:
            self._marked.add(key)
        return key

    def at(self, top: Path) -> Project:
        """The project of a folder that `top_of` gave."""
        if top not in self._known:
            most = _MOST_FILES if top in self._marked else _MOST_UNMARKED
            settings: list[str] = []
            self._known[top] = Project(self._files(top, settings), most, Declared.of(self._settings), settings)
        return self._known[top]

    def _files(self, folder: Path, settings: list[str]) -> Iterator[Path | str]:
        """The files of the project, found when they are asked for; adds those that are not Python to `settings`."""
        if folder in self._marked or os.path.isfile(folder / "__init__.py"):
            yield from below(str(folder), self._settings, settings)
            return
        for path in _entries(folder):
            if path.suffix == ".py":
                yield path
            elif path.is_dir() and _has_code(path):
                yield from below(str(path), self._settings, settings)
            elif may_name_code(str(path)):
                settings.append(str(path))


def root_of(folder: Path) -> Path | None:
    """The root of the project that a folder is in; None if nothing marks it.

    It is the root of the repository, else the nearest folder with a marker, else the nearest with a sign.
    """
    nearest: Path | None = None
    signed: Path | None = None
    for each in (folder, *folder.parents):
        found = [name for name in _MARKERS if os.path.lexists(each / name)]
        if not _REPOSITORY.isdisjoint(found):
            return each
        if found and nearest is None:
            nearest = each
        if signed is None and any(os.path.isfile(each / name) for name in _SIGNS):
            signed = None if _is_shared(each) or _holds_installed(each) else each
    return nearest or signed


def _top(folder: Path) -> Path:
    """The folder of the outermost package that a folder belongs to, or the one above it that holds scripts."""
    found = folder
    while os.path.isfile(found / "__init__.py") and os.path.isfile(found.parent / "__init__.py"):
        found = found.parent
    for _ in range(_MOST_FOLDERS):
        above = found.parent
        if above == found or _is_shared(above) or not _has_code(above) or _holds_installed(above):
            break
        found = above
    return found


def _is_shared(folder: Path) -> bool:
    """True for a folder of unrelated things: the home folder, and those in which all users may create files."""
    try:
        return folder == Path.home() or bool(folder.stat().st_mode & stat.S_ISVTX)
    except (OSError, RuntimeError):
        # There is no such folder, or no home folder.
        return False


def _has_code(folder: Path) -> bool:
    return any(path.suffix == ".py" for path in _entries(folder))


def _holds_installed(folder: Path) -> bool:
    return any(path.name.endswith(_INSTALLED) for path in _entries(folder))


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        # It is reported when a file in it is read.
        return []

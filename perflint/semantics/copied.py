"""Folders that are copies of others: a model saved beside its results, a package that was downloaded again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from perflint.semantics.memo import remembered

_LEAST_FILES = 2
"""Files of a folder that is a copy: programs of one file are often written alike, and each is run."""
_LEAST_SHARE = 0.8
"""The share of its lines that the other folder must have."""
_LEAST_LINES = 20
"""A folder with fewer lines proves nothing."""


class Copies:
    """The copies among the folders of some files, whose paths are texts; `text` gives the text of a file."""

    def __init__(self, files: Iterable[str], text: Callable[[str], str]) -> None:
        self._text = text
        self._names: dict[str, set[str]] = {}
        self._folders: dict[str, list[str]] = {}
        for folder, name in map(os.path.split, files):
            if name != "__init__.py":
                self._names.setdefault(folder, set()).add(name)
                self._folders.setdefault(name, []).append(folder)

    def originals(self, path: str) -> list[str]:
        """The files of which a file is a copy, those of the largest folders first.

        All files of its folder have namesakes in the folder of the original, with nearly the same lines. Of two folders
        with the same files, that with the shorter path is the original.
        """
        folder, name = os.path.split(path)
        names = self._names.get(folder, set())
        if len(names) < _LEAST_FILES or name not in names:
            return []
        others = [each for each in self._folders[name] if each != folder and names <= self._names[each]]
        others = [each for each in others if self._order(each) < self._order(folder)]
        return [os.path.join(each, name) for each in sorted(others, key=self._order) if self._is_copy(folder, each)]

    def _order(self, folder: str) -> tuple[int, int, str]:
        return -len(self._names[folder]), folder.count(os.sep), folder

    def _is_copy(self, folder: str, other: str) -> bool:
        return self._share(folder, other) >= _LEAST_SHARE

    @remembered
    def _share(self, folder: str, other: str) -> float:
        """The share of the lines of a folder that another has in the files of the same names; 0 for few lines."""
        found = count = 0
        for name in self._names[folder]:
            known = set(self._of(os.path.join(other, name)))
            lines = self._of(os.path.join(folder, name))
            count += len(lines)
            found += sum(line in known for line in lines)
        return found / count if count >= _LEAST_LINES else 0.0

    @remembered
    def _of(self, path: str) -> list[str]:
        """The lines of a file without indentation, none of which is empty."""
        return [line for each in self._text(path).splitlines() if (line := each.strip())]

"""A copy of a project for a program to run in."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from perflint.config.errors import ConfigurationError
from perflint.frozen import dataclass

LARGEST = 2 * 1024**3
"""Bytes that are copied at most: each run has a copy of its own."""
_LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", "__pycache__", ".hypothesis", ".ipynb_checkpoints", ".mypy_cache", ".nox"}
    | {".pytest_cache", ".ruff_cache", ".tox"}
)
_ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")
_TOPS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
"""Entries of the top folder of a project, the surest first."""


def project_root(folder: Path) -> Path:
    """The top of the repository around a folder, else the nearest folder with a project's file, else the folder."""
    above = [folder, *folder.parents]
    for name in _TOPS:
        for candidate in above:
            if (candidate / name).exists():
                return candidate
    return folder


@dataclass(frozen=True, slots=True)
class _Entry:
    """Something of the project, by its path from the root."""

    path: str
    stamp: tuple[int, int] = (0, 0)
    """Of a file: its time in nanoseconds, and its bytes."""
    target: str | None = None
    """Of a link: where it leads."""
    is_folder: bool = False


class Workspace:
    """A folder that is made anew for each run, so that no run sees what another has left there.

    It always has the same path. Files are copies: the program may write where it will. Virtual
    environments and the paths of `share` are links to the original; version control, caches and the paths of
    `leave_out` are not there. Raises ConfigurationError for a project that is too large, OSError
    for one that cannot be read.
    """

    def __init__(self, root: Path, share: Sequence[Path] = (), leave_out: Sequence[Path] = ()) -> None:
        self.root = root
        self.shared: list[str] = []
        """The linked entries, as absolute paths of the original."""
        self._share = {path.absolute() for path in share}
        self._leave_out = {path.absolute() for path in leave_out}
        self._entries = list(self._scan(root))
        self._files = {entry.path for entry in self._entries if not entry.is_folder and entry.target is None}
        self._require_small()
        self._above = Path(tempfile.mkdtemp(prefix="perflint-verify-"))
        self.folder = self._above / (root.name or "project")
        """The folder of the copy."""
        self.output = self._above / "seen"
        """A folder for what is not the program's, beside the copy; empty after `renew`."""

    def renew(self, changes: Mapping[str, bytes]) -> None:
        """Make the copy, with some files, by their paths, changed.

        Raises OSError, and ValueError for a file of which it has no copy.
        """
        for folder in (self.folder, self.output):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
        for entry in self._entries:
            place = self.folder / entry.path
            if entry.is_folder:
                place.mkdir(exist_ok=True)
            elif entry.target is not None:
                place.symlink_to(entry.target)
            else:
                shutil.copy2(self.root / entry.path, place)
        for path, data in changes.items():
            if not self.holds(path):
                # A link would lead to the original.
                raise ValueError(f"there is no copy of {path}")
            self.place(path).write_bytes(data)

    def place(self, path: str | Path) -> Path:
        """The path in the copy for a path of the original. Raises ValueError for one outside of the project."""
        return self.folder / Path(os.path.abspath(path)).relative_to(self.root)

    def holds(self, path: str) -> bool:
        """True if the copy has a copy of a file: it has links to others, or nothing."""
        return os.path.relpath(os.path.abspath(path), self.root).replace(os.sep, "/") in self._files

    def changed(self) -> list[str]:
        """The files of the original that are not what they were at first, by their paths from the root."""
        return [
            entry.path
            for entry in self._entries
            if entry.path in self._files and self._stamp(entry.path) != entry.stamp
        ]

    def digest(self, leave_out: Collection[Path]) -> str:
        """A digest of the project as it was at first, by the times and sizes of its files but for some."""
        others = {os.path.relpath(path.absolute(), self.root) for path in leave_out}
        entries = [str(entry) for entry in self._entries if entry.path not in others]
        return hashlib.sha256("\n".join(entries).encode("utf-8", "surrogatepass")).hexdigest()

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self._above, ignore_errors=True)

    def _scan(self, folder: Path) -> Iterator[_Entry]:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            path = Path(entry.path)
            name = path.relative_to(self.root).as_posix()
            if path in self._leave_out or (entry.name in _LEFT_OUT and path not in self._share):
                continue
            if entry.is_symlink():
                yield _Entry(name, target=self._target(path))
            elif path in self._share or (entry.is_dir() and any((path / mark).exists() for mark in _ENVIRONMENTS)):
                self.shared.append(str(path))
                yield _Entry(name, target=str(path))
            elif entry.is_dir():
                yield _Entry(name, is_folder=True)
                yield from self._scan(path)
            elif stat.S_ISREG(entry.stat().st_mode):
                yield _Entry(name, self._stamp(name))

    def _target(self, link: Path) -> str:
        """The target of a link of the copy: within the copy if it was within the project."""
        target = os.readlink(link)
        full = os.path.normpath(link.parent / target)
        if not Path(full).is_relative_to(self.root):
            return full
        return os.path.relpath(full, link.parent)

    def _stamp(self, path: str) -> tuple[int, int]:
        try:
            status = (self.root / path).stat()
        except FileNotFoundError:
            return (0, -1)
        return (status.st_mtime_ns, status.st_size)

    def _require_small(self) -> None:
        sizes: Counter[str] = Counter()
        for entry in self._entries:
            sizes[entry.path.partition("/")[0]] += max(entry.stamp[1], 0)
        if sizes.total() <= LARGEST:
            return
        most = ", ".join(f"{name} {size / 1e9:.1f} GB" for name, size in sizes.most_common(3))
        raise ConfigurationError(
            f"{self.root} is too large to be copied for each run: {most}",
            "`--share PATH` links to what the program only reads, `--leave-out PATH` goes without it",
        )

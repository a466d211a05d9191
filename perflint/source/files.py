"""Which files to check."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from functools import cached_property

from perflint.config.patterns import Patterns
from perflint.config.regular import read_regular
from perflint.config.settings import Settings
from perflint.findings import Problem
from perflint.frozen import dataclass, field
from perflint.source.reading import NOTEBOOK

STANDARD_INPUT = "-"
_NAMES_CODE = (".yaml", ".yml", ".toml", ".cfg", ".ini", ".gin", ".json", ".jsonnet", ".sh", NOTEBOOK)
"""Suffixes of files that are not Python and may name functions and classes."""
_LARGEST_SETTINGS = 100_000
_LARGEST_NOTEBOOK = 2_000_000
"""Bytes of such a file; larger ones hold data."""
PYTHON = frozenset({"", ".py", ".pyi", ".pyw"})
"""Suffixes of files that may hold Python: scripts often have none."""


@dataclass(slots=True)
class Discovery:
    """The files that some paths stand for.

    `files` are named as the user would: below a folder as it was given. `empty` are the
    folders, as given, without a file to check. `outside` are the files that are links, were found below a folder
    and lead out of all that the user named: they may be read, but their targets must not be changed.
    """

    files: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    outside: set[str] = field(default_factory=set)


def discover(
    paths: Sequence[str], settings: Settings, force_exclude: bool = False, notebooks: bool = False
) -> Discovery:
    """The Python files that `paths` stand for, each once, in the order of `paths` and by name within a folder.

    A folder is searched for *.py, with `notebooks` also for *.ipynb, without the files that settings and .gitignore
    files exclude. A file that is named is always checked, unless its suffix is that of another kind of file: that is
    a problem. `force_exclude` excludes named files and folders too.
    """
    found = Discovery()
    walker = _Walker(settings, found.problems, (".py", NOTEBOOK) if notebooks else (".py",))
    seen: set[str] = set()
    for path in paths:
        if force_exclude and walker.excludes(path):
            continue
        if os.path.isdir(path):
            files = list(walker.walk(path))
            if not files:
                found.empty.append(path)
        elif os.path.lexists(path):
            problem = _other_kind(path, notebooks)
            if problem is not None:
                found.problems.append(problem)
                continue
            files = [path]
        else:
            found.problems.append(Problem(path, "no such file or folder"))
            continue
        for file in files:
            key = os.path.realpath(file) if len(paths) > 1 else file
            if key not in seen:
                seen.add(key)
                found.files.append(file)
    named = [os.path.realpath(path) for path in paths]
    for file in walker.links.intersection(found.files):
        if not any(is_below(os.path.realpath(file), path) for path in named):
            found.outside.add(file)
    return found


def below(folder: str, settings: Settings, others: list[str] | None = None) -> Iterator[str]:
    """The Python files in a folder that neither settings nor .gitignore files exclude; folders are searched by name.

    The files of other kinds that may name code are added to `others`.
    """
    if others is None:
        yield from _Walker(settings, []).walk(folder)
        return
    for path in _Walker(settings, [], (".py", *_NAMES_CODE)).walk(folder):
        if path.endswith(".py"):
            yield path
        elif may_name_code(path):
            others.append(path)


def may_name_code(path: str) -> bool:
    """True for a file of settings or commands, or a notebook, that may name functions and classes; not for data."""
    try:
        size = os.stat(path).st_size
    except OSError:
        return False
    return path.endswith(_NAMES_CODE) and size <= (_LARGEST_NOTEBOOK if path.endswith(NOTEBOOK) else _LARGEST_SETTINGS)


def is_below(path: str, folder: str) -> bool:
    """True if an absolute path is a folder or file, or in it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _other_kind(path: str, notebooks: bool) -> Problem | None:
    """The problem of a named file whose suffix says that it holds something other than Python, or None."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix in PYTHON or (notebooks and suffix == NOTEBOOK):
        return None
    if suffix == NOTEBOOK:
        help = "`perflint check` and `perflint fix` do; or convert it: `jupyter nbconvert --to script NOTEBOOK`"
        return Problem(path, "this command does not read notebooks", help=help)
    return Problem(path, f"not a Python file: its name ends in `{suffix}`", help="rename it, or pass it as `-`")


def is_excluded(path: str, settings: Settings) -> bool:
    """True if a file, which need not exist, or a folder above it is excluded."""
    return _Walker(settings, []).excludes(path)


@dataclass(frozen=True, slots=True)
class _Level:
    """A folder's ignore file; `prefix` is the absolute folder with a slash at its end."""

    prefix: str
    patterns: Patterns

    def verdict(self, path: str, folder: bool) -> bool | None:
        return self.patterns.verdict(path[len(self.prefix) :], folder)


_Levels = tuple[_Level, ...]
_Waiting = tuple[str, str, _Levels, bool]
"""A file or folder to look at: name as shown, absolute path, ignore files above it, whether it is a folder."""


class _Walker:
    def __init__(self, settings: Settings, problems: list[Problem], suffixes: tuple[str, ...] = (".py",)) -> None:
        self._suffixes = suffixes
        self._exclude = _Level(_prefix(settings.root), Patterns(settings.exclude))
        self._names = [pattern for pattern in settings.exclude if "/" not in pattern.rstrip("/")]
        self._problems = problems
        self.links: set[str] = set()
        """The files found so far that are links."""

    def excludes(self, path: str) -> bool:
        """True if a path that the user named, or a folder above it, is excluded."""
        absolute = _slashed(os.path.abspath(path))
        is_folder = os.path.isdir(path)
        above = self._folders_above(absolute)
        if any(self._settings_exclude(folder, True) for folder in self._project_folders(absolute)):
            return True
        levels: _Levels = ()
        for folder, below in zip(above, [*above[1:], absolute], strict=True):
            levels = (*levels, *_ignore_file(folder))
            if self._is_excluded(below, is_folder or below != absolute, levels):
                return True
        return False

    def walk(self, folder: str) -> Iterator[str]:
        """The files to check below a folder that the user named."""
        absolute = _slashed(os.path.abspath(folder))
        levels = tuple(level for above in self._folders_above(absolute) for level in _ignore_file(above))
        yield from self._walk("" if folder in (os.curdir, "") else folder, absolute, levels)

    def _walk(self, shown: str, absolute: str, levels: _Levels) -> Iterator[str]:
        # A list of what is still to be looked at, and no recursion: folders may be nested thousands deep.
        waiting: list[_Waiting] = [(shown, absolute, levels, True)]
        while waiting:
            shown, absolute, levels, is_folder = waiting.pop()
            if not is_folder:
                yield shown
                continue
            levels = (*levels, *_ignore_file(absolute))
            found: list[_Waiting] = []
            for entry in self._entries(shown, absolute):
                is_folder = _is_folder(entry)
                if not is_folder and not entry.name.endswith(self._suffixes):
                    continue
                path = f"{absolute.rstrip('/')}/{entry.name}"
                if self._is_excluded(path, is_folder, levels) or not (is_folder or _may_be_file(entry)):
                    continue
                name = os.path.join(shown, entry.name)
                found.append((name, path, levels, is_folder))
                if not is_folder and entry.is_symlink():
                    self.links.add(name)
            waiting += reversed(found)

    def _entries(self, shown: str, absolute: str) -> list[os.DirEntry[str]]:
        """The entries of a folder, by name; a folder that cannot be searched is a problem."""
        try:
            with os.scandir(absolute) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            message = f"cannot search the folder: {error.strerror or error}"
            self._problems.append(Problem(shown or os.curdir, message, help="exclude it"))
            return []

    def _is_excluded(self, path: str, folder: bool, levels: _Levels) -> bool:
        if self._settings_exclude(path, folder):
            return True
        for level in reversed(levels):
            verdict = level.verdict(path, folder)
            if verdict is not None:
                return verdict
        return False

    def _settings_exclude(self, path: str, folder: bool) -> bool:
        if path.startswith(self._exclude.prefix):
            return bool(self._exclude.verdict(path, folder))
        return bool(self._anywhere.verdict(path.rpartition("/")[2], folder))

    @cached_property
    def _anywhere(self) -> Patterns:
        """The excludes outside of the root, where only names can match."""
        return Patterns(self._names)

    def _project_folders(self, absolute: str) -> list[str]:
        """The folders of the project above a path, from below its root down."""
        prefix = self._exclude.prefix
        return _above(absolute, len(prefix)) if absolute.startswith(prefix) else []

    def _folders_above(self, absolute: str) -> list[str]:
        """The folders above a path whose ignore files count: of its git repository, else of the project."""
        parent = absolute.rpartition("/")[0]
        top = _repository(parent)
        if top is None:
            top = self._exclude.prefix.rstrip("/") if absolute.startswith(self._exclude.prefix) else parent
        return _above(absolute, len(top))


def _above(path: str, start: int) -> list[str]:
    """The folders above a path, from the one whose name ends at or after `start` down."""
    return [path[:end] for end in range(start, len(path)) if path[end] == "/"]


def _repository(folder: str) -> str | None:
    while True:
        if os.path.exists(f"{folder}/.git"):
            return folder
        parent = folder.rpartition("/")[0]
        if not parent:
            return None
        folder = parent


def _ignore_file(folder: str) -> _Levels:
    """The patterns of a folder's .gitignore; at the top of a repository also its own exclude file."""
    levels = []
    for name in (".git/info/exclude", ".gitignore"):
        try:
            data = read_regular(f"{folder}/{name}")
        except OSError:
            # None is there, or it cannot be read: then it excludes nothing.
            continue
        patterns = Patterns((data or b"").decode("utf-8", "surrogateescape").splitlines())
        if patterns:
            levels.append(_Level(_prefix(folder), patterns))
    return tuple(levels)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _may_be_file(entry: os.DirEntry[str]) -> bool:
    """True if an entry is a file, or a link to one. One that cannot be looked at counts: reading it says why."""
    try:
        return entry.is_file()
    except OSError as error:
        # A link in a circle leads nowhere, as one to a missing file does.
        return error.errno != errno.ELOOP


def _prefix(folder: str) -> str:
    return _slashed(folder).rstrip("/") + "/"


def _slashed(path: str) -> str:
    return path.replace(os.sep, "/")

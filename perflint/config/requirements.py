"""The oldest torch that the files of a project allow.

Nothing of the project is run: all files are read as text. A file that is missing, cannot be read or
is too large states nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from perflint.config.regular import read_regular
from perflint.config.settings import DEFAULT_EXCLUDES, Version
from perflint.config.torch_bounds import in_conda, in_requirements, in_words, lower_bound

_LARGEST = 1 << 20
_LARGEST_SETUP = 1 << 18
"""Bytes of the largest file that is read, and of the largest setup.py, which must be parsed."""
_MOST_ENTRIES = 5000
_MOST_FILES = 100
_MOST_FOLDERS = 300

_INCLUDE = re.compile(r"\s*+(?:-r|-c|--requirement|--constraint)[\s=]\s*+([^\s#]++)")
_LISTS = re.compile(r"setup\.cfg|[\w.-]*(?:requirement|constraint)s?[\w.-]*\.(?:txt|in)")
_WORDS = re.compile(
    r"(?:readme|install)[\w.-]*|[\w.-]*\.(?:sh|bat|dockerfile)|(?:docker|container)file[\w.-]*|makefile|pipfile"
    r"|tox\.ini|pixi\.toml"
)
"""Names of files, in small letters."""


def required_torch(folder: str, document: Mapping[str, Any], with_files: bool = True) -> Version | None:
    """The lowest bound on torch that a folder states, in its pyproject.toml (`document`) and beside it."""
    stated = [*_in_document(document), *(_Reader().folder(folder) if with_files else ())]
    return _lowest(stated)


def required_below(root: str) -> Version | None:
    """The lowest bound on torch that a file in any folder below `root` states; of a large tree, some files are read."""
    reader = _Reader()
    folders = [root]
    return _lowest(bounds for folder in folders for bounds in reader.folder(folder, folders))


def _lowest(stated: Iterable[str]) -> Version | None:
    found = map(lower_bound, stated)
    return min((bound for bound in found if bound is not None), default=None)


# pyproject.toml


def _in_document(document: Mapping[str, Any]) -> Iterator[str]:
    """The bounds in the tables of a pyproject.toml: of the standard, of Poetry and of uv."""
    project, tool = _table(document, "project"), _table(document, "tool")
    poetry, uv = _table(tool, "poetry"), _table(tool, "uv")
    lists = [project.get("dependencies"), *_table(project, "optional-dependencies").values()]
    lists += _table(document, "dependency-groups").values()
    lists += [uv.get(f"{kind}-dependencies") for kind in ("dev", "constraint", "override")]
    for each in lists:
        for requirement in each if isinstance(each, list) else ():
            if isinstance(requirement, str):
                yield from in_requirements(requirement)
    groups = [_table(each, "dependencies") for each in _table(poetry, "group").values() if isinstance(each, dict)]
    for table in (_table(poetry, "dependencies"), _table(poetry, "dev-dependencies"), *groups):
        stated = table.get("torch")
        for version in stated if isinstance(stated, list) else [stated]:
            version = version.get("version") if isinstance(version, dict) else version
            if isinstance(version, str):
                yield version


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = document.get(key)
    return table if isinstance(table, dict) else {}


# Other files


class _Reader:
    """Reads each file that may state a bound once, together with those that it includes."""

    def __init__(self) -> None:
        self._read: set[str] = set()

    def folder(self, folder: str, below: list[str] | None = None) -> Iterator[str]:
        """The bounds on torch in the files of a folder, and in those of its folder `requirements`.

        Adds the folders in it that may hold code of the project to `below`.
        """
        files, folders = _entries(folder)
        # Of many YAML files, most hold other settings.
        for name in sorted(files, key=lambda name: (_is_yaml(name) and "env" not in name, name)):
            if (stated := _stated_in(name)) is not None:
                yield from self._of_file(os.path.join(folder, name), stated)
        if "requirements" in folders:
            inner = os.path.join(folder, "requirements")
            for name in _entries(inner)[0]:
                if name.endswith(".txt"):
                    yield from self._of_file(os.path.join(inner, name), in_requirements)
        if below is not None:
            own = [os.path.join(folder, name) for name in folders if name not in DEFAULT_EXCLUDES]
            below += own[: _MOST_FOLDERS - len(below)]

    def _of_file(self, path: str, stated: Callable[[str], Iterator[str]]) -> Iterator[str]:
        path = os.path.normpath(path)
        if len(self._read) >= _MOST_FILES or path in self._read:
            return
        self._read.add(path)
        text = _text(path, _LARGEST_SETUP if stated is _in_setup else _LARGEST)
        yield from stated(text)
        if stated is in_requirements:
            for line in text.splitlines():
                if included := _INCLUDE.match(line):
                    yield from self._of_file(os.path.join(os.path.dirname(path), included[1]), stated)


def _stated_in(name: str) -> Callable[[str], Iterator[str]] | None:
    """The reader of the bounds in a file of this name; None if it states none."""
    name = name.lower()
    if name == "setup.py":
        return _in_setup
    if _LISTS.fullmatch(name):
        return in_requirements
    if _is_yaml(name):
        return _in_yaml
    return in_words if _WORDS.fullmatch(name) else None


def _is_yaml(name: str) -> bool:
    return name.lower().endswith((".yml", ".yaml"))


def _in_yaml(text: str) -> Iterator[str]:
    """The bounds in an environment of conda, or in the commands and versions of a workflow."""
    if "dependencies" in text:
        yield from in_conda(text)
    yield from in_words(text)


def _in_setup(text: str) -> Iterator[str]:
    for constant in _constants(text):
        yield from in_requirements(constant)


def _entries(folder: str) -> tuple[list[str], list[str]]:
    """The names of the files and of the folders in a folder, in order; of a very large one, only some."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(
                (entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, _MOST_ENTRIES)
            )
    except OSError:
        return [], []
    return [name for name, is_folder in found if not is_folder], [name for name, is_folder in found if is_folder]


def _text(path: str, largest: int) -> str:
    try:
        data = read_regular(path, largest) or b""
    except OSError:
        return ""
    # PowerShell writes the output of `pip freeze` in UTF-16.
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", errors="replace")


def _constants(text: str) -> Iterator[str]:
    """The strings in a Python file that may name torch with a bound."""
    if not re.search(r"torch\s*+[\[(=<>~!]", text):
        return
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value

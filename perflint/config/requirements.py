"""The oldest torch that the files of a project allow.

Nothing of the project is run: all files are read as text. A file that is missing, cannot be read or
is too large states nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from perflint.config.regular import read_regular
from perflint.config.settings import Version

_LARGEST = 1 << 20
_LARGEST_SETUP = 1 << 18
"""Bytes of the largest requirement file, and of the largest setup.py, which must be parsed."""
_MOST_ENTRIES = 5000
_MOST_FILES = 40
_MOST_ALTERNATIVES = 20

_REST = r"[^;)#\n]*+"
_PIP = re.compile(
    rf"\s*+(?:[\w.-]++\s*+[=:]\s*+)?torch\s*+(?:\[[^\]\n]*+\])?\s*+\(?(?P<bounds>[^\w@.\n-]{_REST})", re.IGNORECASE
)
"""`torch>=1.8`, also behind `install_requires =`."""
_CONDA = re.compile(
    rf"\s*+-\s*+[\"']?(?:[\w.-]++::)?(?:py)?torch(?:-[cg]pu)?(?P<bounds>(?:\s++\d|[^\w@.\n-]){_REST})", re.IGNORECASE
)
"""`- pytorch=1.8`, `- conda-forge::pytorch 1.8.*`, and `- torch>=1.8` of pip."""
_INCLUDE = re.compile(r"\s*+(?:-r|-c|--requirement|--constraint)[\s=]\s*+([^\s#]++)")
_CLAUSE = re.compile(
    r"(?<![\w.])(?P<operator>===?|~=|>=|<=|!=|[~^<>=])?\s*+v?"
    r"(?P<major>\d{1,9}+)(?!\d)(?:\.(?P<minor>\d{1,9}+)(?!\d)(?:\.(?P<patch>\d{1,9}+)(?!\d))?)?"
)
_FILES = re.compile(r"requirements[\w.-]*\.txt|environment[\w.-]*\.ya?ml|setup\.(?:cfg|py)")
_LAST_OF_ONE: Version = (1, 13)
"""The last release before torch 2.0."""


def required_torch(folder: str, document: Mapping[str, Any], with_files: bool = True) -> Version | None:
    """The lowest bound on torch that a folder states, in its pyproject.toml (`document`) and beside it."""
    stated = [lower_bound(bounds) for bounds in _in_document(document)]
    if with_files:
        stated += [lower_bound(bounds) for bounds in _Folder(folder).bounds()]
    return min((bound for bound in stated if bound is not None), default=None)


def lower_bound(bounds: str) -> Version | None:
    """The lower bound of `>=1.8,<2`, `^1.8`, `1.8.*`; of an upper bound alone, the last version below it."""
    found = [_of_one(each) for each in bounds.split("|")[:_MOST_ALTERNATIVES]]
    return min((bound for bound in found if bound is not None), default=None)


def _of_one(bounds: str) -> Version | None:
    lower: list[Version] = []
    upper: list[Version] = []
    for clause in _CLAUSE.finditer(bounds):
        version = int(clause["major"]), int(clause["minor"] or 0)
        if clause["operator"] == "<=" or (clause["operator"] == "<" and int(clause["patch"] or 0)):
            upper.append(version)
        elif clause["operator"] == "<":
            upper += _before(version)
        elif clause["operator"] != "!=":
            lower.append(version)
    return max(lower) if lower else min(upper, default=None)


def _before(version: Version) -> list[Version]:
    """The last minor version before another one, if it is known."""
    major, minor = version
    if minor:
        return [(major, minor - 1)]
    return [_LAST_OF_ONE] if major == 2 else []


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
                yield from _matches(_PIP, requirement)
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


class _Folder:
    """The requirement files of a folder, each read once, together with those that they include."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._read: set[str] = set()

    def bounds(self) -> Iterator[str]:
        """The bounds on torch in all files."""
        names = _names(self._folder)
        paths = [os.path.join(self._folder, name) for name in names if _FILES.fullmatch(name)]
        if "requirements" in names:
            inner = os.path.join(self._folder, "requirements")
            paths += [os.path.join(inner, name) for name in _names(inner) if name.endswith(".txt")]
        for path in paths:
            yield from self._of_file(path)

    def _of_file(self, path: str) -> Iterator[str]:
        path = os.path.realpath(path)
        if path in self._read or len(self._read) >= _MOST_FILES:
            return
        self._read.add(path)
        is_setup = path.endswith("setup.py")
        text = _text(path, _LARGEST_SETUP if is_setup else _LARGEST)
        if is_setup:
            for constant in _constants(text):
                yield from _matches(_PIP, constant)
        else:
            yield from _matches(_CONDA if path.endswith((".yml", ".yaml")) else _PIP, text)
        if path.endswith(".txt"):
            for line in text.splitlines():
                if included := _INCLUDE.match(line):
                    yield from self._of_file(os.path.join(os.path.dirname(path), included[1]))


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    if "torch" in text:
        for line in text.splitlines():
            if found := pattern.match(line):
                yield found["bounds"].partition(" --")[0]


def _names(folder: str) -> list[str]:
    """The names in a folder in order; of a very large one, only some."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, _MOST_ENTRIES))
    except OSError:
        return []


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

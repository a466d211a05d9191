"""[tool.perflint] in pyproject.toml: finding it, reading it, saying clearly what is wrong in it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, TypeVar

from perflint.config import formatters
from perflint.config.errors import ConfigurationError, did_you_mean
from perflint.config.regular import read_regular
from perflint.config.requirements import required_torch
from perflint.config.selection import Selection
from perflint.config.settings import Options, OutputFormat, PerFileIgnores, Profile, Version, parse_version
from perflint.frozen import dataclass

_LARGEST = 1 << 20
"""Bytes of the largest pyproject.toml that is read."""
_LARGE = 1e15
"""Python refuses to write out numbers of more than 4300 digits."""
_MOST_PARTS = 300
"""Of one key; tomllib takes time that is quadratic in them."""
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_MOST_PARTS}}}"
_WITHOUT = "`--isolated` goes on without it"

_Choice = TypeVar("_Choice", bound=Enum)


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """The settings of a project: its options and the absolute folder to which its patterns are relative."""

    options: Options = Options()
    root: str | None = None
    """None for the working directory."""


def find(paths: Sequence[str]) -> ProjectFile:
    """The options of the nearest pyproject.toml with [tool.perflint], from the folder common to `paths` upwards.

    Without one, the options say nothing and the root is the working directory. If no `torch-version`
    is stated, it is the oldest torch that the nearest folder with a requirement of torch allows.
    Raises ConfigurationError for a file that cannot be read as settings.
    """
    documents: dict[str, Mapping[str, Any]] = {}
    for folder in _upwards(_common_folder(paths)):
        documents[folder] = document = _load(os.path.join(folder, "pyproject.toml"))
        table = _tables(document, "tool").get("perflint")
        if table is not None:
            options = parse(table, os.path.join(folder, "pyproject.toml"))
            return ProjectFile(replace(options, torch_version=options.torch_version or _torch(documents)), folder)
    return ProjectFile(Options(torch_version=_torch(documents)))


def line_length(paths: Sequence[str]) -> int | None:
    """The line length that the project around `paths` states for its formatter; None if it states none."""
    return formatters.line_length(_of_project(_upwards(_common_folder(paths))))


def _torch(documents: Mapping[str, Mapping[str, Any]]) -> Version | None:
    """The oldest torch that the nearest folder with a requirement of torch allows; folders come nearest first."""
    inside = _of_project(list(documents))
    found = (required_torch(folder, document, folder in inside) for folder, document in documents.items())
    return next((version for version in found if version is not None), None)


def _of_project(folders: Sequence[str]) -> Sequence[str]:
    """The folders, nearest first, up to the root of the repository, or else up to the working directory."""
    for at, folder in enumerate(folders):
        if os.path.lexists(os.path.join(folder, ".git")):
            return folders[: at + 1]
    here = os.getcwd()
    return folders[: folders.index(here) + 1] if here in folders else folders[:1]


def _common_folder(paths: Sequence[str]) -> str:
    folders = [
        path if os.path.isdir(path) else os.path.dirname(path) for path in map(os.path.abspath, paths or (os.curdir,))
    ]
    try:
        return os.path.commonpath(folders)
    except ValueError:
        # Paths on different drives.
        return os.getcwd()


def _upwards(folder: str) -> list[str]:
    folders = [folder]
    while (parent := os.path.dirname(folder)) != folder:
        folders.append(folder := parent)
    return folders


def _load(path: str) -> Mapping[str, Any]:
    """The document, empty where the file is missing or has nothing for perflint."""
    try:
        data = read_regular(path, _LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}", _WITHOUT) from None
    if data is None:
        message = f"{path}: cannot be read: it is no regular file, or larger than {_LARGEST >> 20} MB"
        raise ConfigurationError(message, _WITHOUT)
    if b"perflint" not in data and b"torch" not in data:
        return {}
    import tomllib

    try:
        text = data.decode("utf-8")
        if re.search(_LONG_KEY, text):
            raise ConfigurationError(f"{path}: cannot be read: a key has more than {_MOST_PARTS} parts", _WITHOUT)
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigurationError(f"{path}: cannot be read: values are nested too deep", _WITHOUT) from None
    except ValueError as error:
        # One that is no TOMLDecodeError: bytes that are no UTF-8, and numbers of more than 4300 digits.
        raise ConfigurationError(f"{path}: not valid TOML: {error}", _WITHOUT) from None


def _tables(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = document.get(key)
    return table if isinstance(table, dict) else {}


class _Key:
    """One key of the table, for error messages."""

    def __init__(self, file: str, name: str) -> None:
        self.file = file
        self.name = name

    def error(self, expected: str, value: object, help: str | None = None) -> ConfigurationError:
        return ConfigurationError(
            f"{self.file}: `{self.name}` in [tool.perflint] must be {expected}, not {_kind(value)}", help
        )

    def strings(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error("a list of strings", value)
        return tuple(value)

    def choice(self, kind: type[_Choice], value: object) -> _Choice:
        choices = [member.value for member in kind]
        if not isinstance(value, str) or value not in choices:
            suggestion = did_you_mean(value, choices) if isinstance(value, str) else None
            raise self.error("one of " + ", ".join(f'"{choice}"' for choice in choices), value, suggestion)
        return kind(value)

    def version(self, value: object) -> Version:
        if not isinstance(value, str):
            raise self.error('a version in quotes, such as "2.6"', value)
        return parse_version(value, f"`{self.name}` in {self.file}")

    def per_file(self, value: object) -> PerFileIgnores:
        if not isinstance(value, dict):
            raise self.error("a table from path patterns to lists of rules", value)
        return tuple((pattern, self.strings(selectors)) for pattern, selectors in value.items())


def _kind(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value}" if abs(value) < _LARGE else "a large number"
    if isinstance(value, list):
        return "a list" if all(isinstance(item, str) for item in value) else "a list with other things than strings"
    return "a table" if isinstance(value, dict) else f"a {type(value).__name__}"


_KEYS: dict[str, Callable[[_Key, object], object]] = {
    "select": _Key.strings,
    "ignore": _Key.strings,
    "extend-select": _Key.strings,
    "profile": lambda key, value: key.choice(Profile, value),
    "torch-version": _Key.version,
    "exclude": _Key.strings,
    "extend-exclude": _Key.strings,
    "per-file-ignores": _Key.per_file,
    "output-format": lambda key, value: key.choice(OutputFormat, value),
}


def parse(table: object, file: str) -> Options:
    """The options of a [tool.perflint] table. Raises ConfigurationError, which names the file and the key."""
    if not isinstance(table, dict):
        raise ConfigurationError(f"{file}: `perflint` in [tool] must be a table, not {_kind(table)}")
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in _KEYS:
            raise ConfigurationError(
                f"{file}: unknown key `{name}` in [tool.perflint]",
                did_you_mean(name, _KEYS) or f"known keys: {', '.join(_KEYS)}",
            )
        values[name.replace("-", "_")] = _KEYS[name](_Key(file, name), value)
    selection = Selection(
        values.pop("select", None), values.pop("ignore", ()), values.pop("extend_select", ()), origin=file
    )
    return Options(selection=selection, **values)

"""[tool.perflint] in pyproject.toml: finding it, reading it, saying clearly what is wrong in it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from perflint.config import formatters
from perflint.config.errors import ConfigurationError, did_you_mean
from perflint.config.keys import KEYS, SELECTION
from perflint.config.kinds import kind_of
from perflint.config.regular import read_regular
from perflint.config.requirements import required_torch
from perflint.config.selection import Selection
from perflint.config.settings import Options, Version
from perflint.frozen import dataclass

_LARGEST = 1 << 20
"""Bytes of the largest pyproject.toml that is read."""
_MOST_PARTS = 300
"""Of one key; tomllib takes time that is quadratic in them."""
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_MOST_PARTS}}}"
_WITHOUT = "`--isolated` goes on without it"


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


def parse(table: object, file: str) -> Options:
    """The options of a [tool.perflint] table. Raises ConfigurationError, which names the file and the key."""
    if not isinstance(table, dict):
        raise ConfigurationError(f"{file}: `perflint` in [tool] must be a table, not {kind_of(table)}")
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in KEYS:
            raise ConfigurationError(
                f"{file}: unknown key `{name}` in [tool.perflint]",
                did_you_mean(name, KEYS) or f"known keys: {', '.join(KEYS)}",
            )
        key = KEYS[name]
        values[key.attribute] = key.kind.read(value, f"{file}: `{name}` in [tool.perflint]")
    return options(values, file)


def options(values: Mapping[str, Any], origin: str) -> Options:
    """The options of a place from values by the attributes of their keys."""
    others = {name: value for name, value in values.items() if name.replace("_", "-") not in SELECTION}
    selection = Selection(
        values.get("select"), values.get("ignore", ()), values.get("extend_select", ()), origin=origin
    )
    return Options(selection=selection, **others)

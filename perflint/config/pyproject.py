"""Files with settings: finding them, reading them, saying clearly what is wrong in them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from perflint.config import formatters
from perflint.config.errors import ConfigurationError, Faults, did_you_mean
from perflint.config.keys import KEYS, SELECTION, Key
from perflint.config.kinds import kind_of
from perflint.config.lines import placed
from perflint.config.regular import read_regular
from perflint.config.requirements import required_below, required_torch
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
PYPROJECT = "pyproject.toml"
PYPROJECT_TABLE = "[tool.perflint]"
OWN_FILES = ("perflint.toml", ".perflint.toml")
"""The names of files that hold nothing but settings; they win over the pyproject.toml beside them."""
REQUIREMENTS = "the requirements of the project"
_MOST_BASES = 16


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """The settings of a project: its options and the absolute folder to which its patterns are relative."""

    options: Options = Options()
    root: str | None = None
    """None for the working directory."""
    bases: tuple[Options, ...] = ()
    """The options of the files that it extends, the farthest first, and before them those of the requirements."""

    @property
    def places(self) -> tuple[Options, ...]:
        """All options; later ones win."""
        return (*self.bases, self.options)


def find(paths: Sequence[str]) -> ProjectFile:
    """The options of the nearest file with settings, from the folder common to `paths` upwards.

    That is `perflint.toml`, `.perflint.toml` or a `pyproject.toml` with [tool.perflint]. Without one, no option is set
    and the root is the working directory. If no `torch-version` is stated, it is the oldest torch that the project
    allows. Raises ConfigurationError for a file that cannot be read as settings.
    """
    documents: dict[str, Mapping[str, Any]] = {}
    for folder in _upwards(_common_folder(paths)):
        documents[folder] = document = _load(os.path.join(folder, PYPROJECT))
        table, file = _settings_in(folder, document)
        if file is not None:
            own, bases = _extended(table, file)
            return ProjectFile(own, folder, (_required(documents, paths), *bases))
    return ProjectFile(bases=(_required(documents, paths),))


def read_file(path: str) -> ProjectFile:
    """The options of a file that the user names; patterns are relative to the working directory.

    Raises ConfigurationError.
    """
    path = os.path.abspath(path)
    if not os.path.lexists(path):
        raise ConfigurationError(f"{path}: no such file", "`--config` takes a file, or KEY=VALUE")
    document = _load(path, is_own=True)
    own, bases = _extended(_own_table(document, path), path)
    documents = {folder: _load(os.path.join(folder, PYPROJECT)) for folder in _upwards(os.getcwd())}
    required = _required(documents, [])
    return ProjectFile(own, None, (required, *bases))


def _settings_in(folder: str, pyproject: Mapping[str, Any]) -> tuple[object, str | None]:
    """The table of settings in a folder, and its file; None as the file if there is none."""
    for name in OWN_FILES:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return _load(path, is_own=True), path
    tool = _tables(pyproject, "tool")
    return (tool["perflint"], os.path.join(folder, PYPROJECT)) if "perflint" in tool else ({}, None)


def settings_file(folder: str) -> str | None:
    """The path of the file with settings in a folder, or None."""
    return _settings_in(folder, _load(os.path.join(folder, PYPROJECT)))[1]


def _own_table(document: Mapping[str, Any], path: str) -> object:
    """The table of settings of a file that is named: [tool.perflint] if it has one or is a pyproject.toml."""
    tool = _tables(document, "tool")
    if "perflint" in tool or os.path.basename(path) == PYPROJECT:
        return tool.get("perflint", {})
    return document


def _extended(table: object, file: str) -> tuple[Options, tuple[Options, ...]]:
    """The options of a table, and those of the files that it extends, the farthest first."""
    own, above = _parsed(table, file)
    found: list[Options] = []
    seen = [os.path.realpath(file)]
    while above is not None:
        path = os.path.join(os.path.dirname(file), os.path.expanduser(above))
        if os.path.realpath(path) in seen or len(seen) > _MOST_BASES:
            raise ConfigurationError(f"{file}: `extend` goes round in a circle, or extends too many files")
        if not os.path.lexists(path):
            raise ConfigurationError(f"{file}: `extend` names a file that does not exist: {path}", _WITHOUT)
        seen.append(os.path.realpath(path))
        file = path
        base, above = _parsed(_own_table(_load(path, is_own=True), path), path)
        found.insert(0, base)
    return own, tuple(found)


def _required(documents: Mapping[str, Mapping[str, Any]], paths: Sequence[str]) -> Options:
    """The option that the requirements of the project make."""
    return Options(selection=Selection(origin=REQUIREMENTS), torch_version=_torch(documents, paths))


def line_length(paths: Sequence[str]) -> int | None:
    """The line length that the project around `paths` states for its formatter; None if it states none."""
    return formatters.line_length(_of_project(_upwards(_common_folder(paths))))


def _torch(documents: Mapping[str, Mapping[str, Any]], paths: Sequence[str]) -> Version | None:
    """The oldest torch that the nearest folder with a requirement of torch allows; folders come nearest first.

    If there is no such folder, all folders of the project are asked.
    """
    inside = _of_project(list(documents))
    for folder, document in documents.items():
        version = required_torch(folder, document, folder in inside)
        if version is not None:
            return version
    if os.path.lexists(os.path.join(inside[-1], ".git")):
        return required_below(inside[-1])
    # Single files outside of a repository may lie beside anything.
    return required_below(_common_folder(paths)) if all(map(os.path.isdir, paths)) else None


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


def _load(path: str, is_own: bool = False) -> Mapping[str, Any]:
    """The document, empty where the file is missing or, unless it is perflint's own, has nothing for perflint."""
    try:
        data = read_regular(path, _LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}", _WITHOUT) from None
    if data is None:
        message = f"{path}: cannot be read: it is not a regular file, or is larger than {_LARGEST >> 20} MB"
        raise ConfigurationError(message, _WITHOUT)
    if not is_own and b"perflint" not in data and b"torch" not in data:
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
        # Bytes that are not UTF-8, and numbers of more than 4300 digits, raise other errors than TOMLDecodeError.
        raise ConfigurationError(f"{path}: not valid TOML: {error}", _WITHOUT) from None


def _tables(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = document.get(key)
    return table if isinstance(table, dict) else {}


def parse(table: object, file: str) -> Options:
    """The options of a [tool.perflint] table. Raises ConfigurationError, which names the file and the key."""
    return _parsed(table, file)[0]


def _parsed(table: object, file: str) -> tuple[Options, str | None]:
    """The options of a table, and the file that it extends, if any."""
    place = PYPROJECT_TABLE if os.path.basename(file) == PYPROJECT else "the settings"
    if not isinstance(table, dict):
        raise ConfigurationError(f"{file}: `perflint` in [tool] must be a table, not {kind_of(table)}")
    values: dict[str, Any] = {}
    faults = Faults()
    for name, value in table.items():
        with faults.caught():
            if name == "tool" and place != PYPROJECT_TABLE:
                raise ConfigurationError(
                    f"{placed(file, name)}: unknown key `{name}` in {place}",
                    f"in {os.path.basename(file)}, keys stand at the top, without [tool.perflint]",
                )
            key = known_key(name, f"{placed(file, name)}: unknown key `{name}` in {place}")
            values[key.attribute] = key.kind.read(value, f"{placed(file, name)}: `{name}` in {place}")
    faults.check()
    return options(values, file), values.get("extend")


def known_key(name: str, message: str) -> Key:
    """The setting of a name. Raises ConfigurationError with a message if there is none."""
    key = KEYS.get(name)
    if key is None:
        raise ConfigurationError(message, did_you_mean(name, KEYS) or f"known keys: {', '.join(KEYS)}")
    return key


def options(values: Mapping[str, Any], origin: str) -> Options:
    """The options of a place from values by the attributes of their keys."""
    apart = {*SELECTION, "extend"}
    others = {name: value for name, value in values.items() if name.replace("_", "-") not in apart}
    selection = Selection(
        values.get("select"), values.get("ignore", ()), values.get("extend_select", ()), origin=origin
    )
    return Options(selection=selection, **others)

"""Settings from outside of files: environment variables, and KEY=VALUE on the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from perflint.config.errors import ConfigurationError
from perflint.config.keys import KEYS
from perflint.config.pyproject import ProjectFile, find, known_key, options, read_file
from perflint.config.settings import Options, Settings, combine

PREFIX = "PERFLINT_"
ENVIRONMENT = "the environment"
OPTION = "--config"


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.replace("-", "_").upper()


def environment(values: Mapping[str, str] | None = None) -> Options:
    """The options that environment variables set; an empty variable sets none. Raises ConfigurationError."""
    given = os.environ if values is None else values
    found = {
        key.attribute: key.kind.parse(given[variable(key.name)], variable(key.name))
        for key in KEYS.values()
        if key.name != "extend" and given.get(variable(key.name))
    }
    return options(found, ENVIRONMENT)


def places(
    paths: Sequence[str], config: Sequence[str] = (), isolated: bool = False
) -> tuple[list[Options], str | None]:
    """The options of the project around some paths, of the environment and of `--config`, later ones win; and the root.

    A value of `--config` is KEY=VALUE, or the path of a file that is read in place of the project's own.
    Raises ConfigurationError.
    """
    files = [each for each in config if "=" not in each]
    if len(files) > 1:
        raise ConfigurationError(f"`{OPTION}` names two files: {files[0]} and {files[1]}", "`extend` joins files")
    if files and isolated:
        raise ConfigurationError(f"`{OPTION} {files[0]}` and `--isolated` exclude each other")
    found = ProjectFile() if isolated else read_file(files[0]) if files else find(paths)
    return [*found.places, environment(), _given([each for each in config if "=" in each])], found.root


def settings_of(path: str, config: Sequence[str] = (), isolated: bool = False) -> Settings:
    """The settings of the project around a path, of the environment and of `--config`. Raises ConfigurationError."""
    found, root = places([path], config, isolated)
    return combine(*found, root=root)


def _given(pairs: Sequence[str]) -> Options:
    """The options of KEY=VALUE pairs."""
    values = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        name = name.strip()
        table, dot, rest = name.partition(".")
        if dot and table in KEYS:
            raise ConfigurationError(f"`{OPTION} {pair}` names an entry of `{table}`", f"`{table}={{{rest}={text}}}`")
        key = known_key(name, f"unknown key `{name}` in `{OPTION} {pair}`")
        if key.name == "extend":
            raise ConfigurationError("`extend` stands in files only", f"`{OPTION} FILE` reads a file")
        values[key.attribute] = key.kind.parse(text.strip(), f"`{name}` of `{OPTION}`")
    return options(values, OPTION)

"""The settings that the editor sends, by the names of those in pyproject.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perflint.config.errors import ConfigurationError
from perflint.config.pyproject import known_key, options
from perflint.config.settings import Options

ORIGIN = "the editor"
SECTION = "perflint"


def editor_options(sent: object) -> Options:
    """The options in what the editor sent: a table of settings, or one with a table `perflint` in it.

    Names are written as in pyproject.toml or in camel case; null sets nothing. Raises ConfigurationError.
    """
    table = sent
    if isinstance(table, Mapping) and isinstance(table.get(SECTION), Mapping):
        table = table[SECTION]
    if table is None:
        return Options()
    if not isinstance(table, Mapping):
        raise ConfigurationError("the settings of the editor must be a table")
    values = {}
    for name, value in table.items():
        key = known_key(_hyphenated(str(name)), f"unknown key `{name}` in the settings of the editor")
        if key.name == "extend":
            raise ConfigurationError("`extend` stands in files only")
        if value is not None:
            values[key.attribute] = key.kind.read(value, f"`{name}` of the editor")
    return options(values, ORIGIN)


def _hyphenated(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]", lambda found: f"-{found[0]}", name).lower()

"""The settings that the editor sends, by the names of those in pyproject.toml, and a few of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from perflint.config.errors import ConfigurationError, did_you_mean
from perflint.config.keys import KEYS
from perflint.config.kinds import Flag, Kind, Strings
from perflint.config.pyproject import options
from perflint.config.settings import Options
from perflint.frozen import dataclass

ORIGIN = "the editor"
SECTION = "perflint"
_OWN: dict[str, Kind] = {"inlay-hints": Flag(), "code-lens": Flag(), "traces": Strings()}
"""Settings of editors alone: they change the display."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The settings of an editor."""

    options: Options = Options()
    inlay_hints: bool = True
    code_lens: bool = True
    traces: tuple[str, ...] = ()
    """Recordings whose costs are shown, relative to the working directory of the server."""


def editor_choices(sent: object) -> Choices:
    """The settings that the editor sent: a table of settings, or one with a table `perflint` in it.

    Names are written as in pyproject.toml or in camel case; null sets nothing. Raises ConfigurationError.
    """
    table = sent
    if isinstance(table, Mapping) and isinstance(table.get(SECTION), Mapping):
        table = table[SECTION]
    if table is None:
        return Choices()
    if not isinstance(table, Mapping):
        raise ConfigurationError("the settings of the editor must be a table")
    values: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for given, value in table.items():
        name = _hyphenated(str(given))
        kind = _kind(name, f"unknown key `{given}` in the settings of the editor")
        if value is not None:
            into = own if name in _OWN else values
            into[name.replace("-", "_")] = kind.read(value, f"`{given}` of the editor")
    return Choices(options(values, ORIGIN), **own)


def _kind(name: str, message: str) -> Kind:
    """The kind of a setting. Raises ConfigurationError with a message if there is none."""
    if name == "extend":
        raise ConfigurationError("`extend` stands in files only")
    if name in _OWN:
        return _OWN[name]
    if name not in KEYS:
        known = [*KEYS, *_OWN]
        raise ConfigurationError(message, did_you_mean(name, known) or f"known keys: {', '.join(known)}")
    return KEYS[name].kind


def _hyphenated(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]", lambda found: f"-{found[0]}", name).lower()

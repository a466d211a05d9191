"""The kinds of values that settings have: how each is read from TOML or from text, shown, and described in a schema."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from perflint.config.errors import ConfigurationError, did_you_mean
from perflint.config.patterns import pattern_fault
from perflint.config.settings import OptionValue, RuleOptions, Version, parse_version

_LARGE = 1e15
"""Python refuses to write out numbers of more than 4300 digits."""
_MOST_STARS = 4
"""In a name; matching takes more time with each."""
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


class Kind(ABC):
    """The values that a setting may have. `where` names the setting in errors."""

    expected: str
    """The kind in words, which follow "must be"."""
    extends = False
    """True if the values of several places are joined; else the value of the last place counts."""

    @abstractmethod
    def read(self, value: object, where: str) -> Any:
        """The value of a setting from a value of TOML. Raises ConfigurationError."""

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the values."""

    def parse(self, text: str, where: str) -> Any:
        """The value of a setting from a text of the command line or environment: TOML, or as `plain` reads it."""
        if text[:1] in ('"', "'", "[", "{"):
            import tomllib

            try:
                return self.read(tomllib.loads(f"value = {text}")["value"], where)
            except tomllib.TOMLDecodeError as error:
                raise ConfigurationError(f"{where}: not valid TOML: {error}", 'texts in lists: `["a", "b"]`') from None
        return self.read(self.plain(text), where)

    def plain(self, text: str) -> object:
        """The value of TOML that a text without quotes or brackets stands for."""
        return text

    def shown(self, value: Any) -> str:
        """A value of a setting as TOML."""
        return quoted(value)

    def wrong(self, value: object, where: str, help: str | None = None) -> ConfigurationError:
        """The error for a value of another kind."""
        return ConfigurationError(f"{where} must be {self.expected}, not {kind_of(value)}", help)


class Text(Kind):
    """A string that matches a regular expression."""

    def __init__(self, expected: str = "a string", pattern: str = r"(?s).+") -> None:
        self.expected = expected
        self._pattern = pattern

    def read(self, value: object, where: str) -> str:
        if not isinstance(value, str) or not re.fullmatch(self._pattern, value):
            raise self.wrong(value, where)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}


class Flag(Kind):
    """True or false."""

    expected = "true or false"

    def read(self, value: object, where: str) -> bool:
        if not isinstance(value, bool):
            raise self.wrong(value, where)
        return value

    def plain(self, text: str) -> object:
        word = text.lower()
        return True if word in _TRUE else False if word in _FALSE else text

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class Seconds(Kind):
    """A whole number of seconds."""

    expected = "a whole number of seconds, from 1"

    def read(self, value: object, where: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGE:
            raise self.wrong(value, where)
        return value

    def plain(self, text: str) -> object:
        return int(text) if text.isdecimal() and len(text) < len(str(int(_LARGE))) else text

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": 1}


class Choice(Kind):
    """A member of an Enum, written by its value."""

    def __init__(self, kind: type[Enum]) -> None:
        self._kind = kind
        self._values = [member.value for member in kind]
        self.expected = "one of " + ", ".join(f'"{value}"' for value in self._values)

    def read(self, value: object, where: str) -> Enum:
        if not isinstance(value, str) or value not in self._values:
            raise self.wrong(value, where, did_you_mean(value, self._values) if isinstance(value, str) else None)
        return self._kind(value)

    def shown(self, value: Enum) -> str:
        return quoted(value.value)

    def schema(self) -> dict[str, Any]:
        return {"enum": self._values}


class TorchVersion(Kind):
    """A version such as "2.6"."""

    expected = 'a version in quotes, such as "2.6"'

    def read(self, value: object, where: str) -> Version:
        if not isinstance(value, str):
            raise self.wrong(value, where)
        return parse_version(value, f"{where}: ")

    def shown(self, value: Version) -> str:
        return f'"{value[0]}.{value[1]}"'

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^\d+\.\d+"}


class Strings(Kind):
    """A list of strings; in a text, they have commas between them."""

    expected = "a list of strings"

    def __init__(self, extends: bool = False) -> None:
        self.extends = extends

    def read(self, value: object, where: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(value, where)
        return tuple(value)

    def plain(self, text: str) -> object:
        return listed(text)

    def shown(self, value: tuple[str, ...]) -> str:
        return f"[{', '.join(quoted(item) for item in value)}]"

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}}


class PathPatterns(Strings):
    """A list of patterns of paths."""

    def read(self, value: object, where: str) -> tuple[str, ...]:
        patterns = super().read(value, where)
        _require_patterns(patterns, where)
        return patterns


class Names(Strings):
    """A list of names of functions, which extends others."""

    expected = "a list of names with dots between their parts"

    def __init__(self) -> None:
        super().__init__(extends=True)

    def read(self, value: object, where: str) -> tuple[str, ...]:
        names = super().read(value, where)
        for name in names:
            if not re.fullmatch(r"[\w*]++(?:\.[\w*]++)*+", name) or name.count("*") > _MOST_STARS:
                raise self.wrong(name, where)
        return names

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "pattern": r"^[\w*]+(\.[\w*]+)*$"}}


class Modules(Strings):
    """A list of names of modules, which extends others."""

    expected = "a list of names of modules"

    def __init__(self) -> None:
        super().__init__(extends=True)

    def read(self, value: object, where: str) -> tuple[str, ...]:
        names = super().read(value, where)
        for name in names:
            if not re.fullmatch(r"[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+", name):
                raise self.wrong(name, where)
        return names


class Table(Kind):
    """A table from names to values of one kind, as pairs."""

    extends = True

    def __init__(self, expected: str, values: Kind) -> None:
        self.expected = expected
        self._values = values

    def read(self, value: object, where: str) -> tuple[tuple[str, Any], ...]:
        if not isinstance(value, Mapping):
            raise self.wrong(value, where)
        return tuple((name, self._values.read(each, where)) for name, each in value.items())

    def shown(self, value: tuple[tuple[str, Any], ...]) -> str:
        pairs = [f"{quoted(name)} = {self._values.shown(each)}" for name, each in value]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self._values.schema()}


class PatternTable(Table):
    """A table from patterns of paths to values of one kind."""

    def read(self, value: object, where: str) -> tuple[tuple[str, Any], ...]:
        pairs = super().read(value, where)
        _require_patterns([pattern for pattern, _ in pairs], where)
        return pairs


def _require_patterns(patterns: Iterable[str], where: str) -> None:
    """Raise ConfigurationError for the first that is not a pattern."""
    for pattern in patterns:
        fault = pattern_fault(pattern)
        if fault is not None:
            help = "patterns are those of `.gitignore`; a `\\` before a character takes it literally"
            raise ConfigurationError(f"{where}: `{pattern}` is not a pattern of paths: {fault}", help)


class RuleTable(Kind):
    """A table from rules to tables of their options. The names of options depend on the rule, and are tested later."""

    expected = "a table from rules to tables of options"
    extends = True

    def read(self, value: object, where: str) -> RuleOptions:
        if not isinstance(value, Mapping) or not all(isinstance(each, Mapping) for each in value.values()):
            raise self.wrong(value, where)
        return tuple(
            (rule, tuple((name, self._option(each, f"{where}: `{rule}.{name}`")) for name, each in options.items()))
            for rule, options in value.items()
        )

    def _option(self, value: object, where: str) -> OptionValue:
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(value)
        if not isinstance(value, (bool, int, str)):
            raise ConfigurationError(f"{where} must be a number, text, list of strings, true or false")
        return value

    def shown(self, value: RuleOptions) -> str:
        pairs = [f"{quoted(rule)} = {self._table(options)}" for rule, options in value]
        return self._joined(pairs)

    def _table(self, options: tuple[tuple[str, OptionValue], ...]) -> str:
        return self._joined([f"{quoted(name)} = {quoted(value)}" for name, value in options])

    @staticmethod
    def _joined(pairs: list[str]) -> str:
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"type": "object"}}


def quoted(value: object) -> str:
    """A string, number or truth value as TOML writes it."""
    # Most runs show no setting, and importing json takes time.
    import json

    return json.dumps(value, ensure_ascii=False)


def listed(text: str) -> list[str]:
    """The items of a text with commas between them."""
    return [item.strip() for item in text.split(",") if item.strip()]


def kind_of(value: object) -> str:
    """A value of TOML in words, for errors."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value}" if abs(value) < _LARGE else "a large number"
    if isinstance(value, list):
        return "a list" if all(isinstance(item, str) for item in value) else "a list with other things than strings"
    return "a table" if isinstance(value, dict) else f"a {type(value).__name__}"

"""The table of all settings: the reader, `perflint config`, the documents and the JSON Schema are made of it.

Their descriptions are in `keys.toml`.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from perflint.config.kinds import (
    Choice,
    Flag,
    Kind,
    Modules,
    Names,
    PathPatterns,
    PatternTable,
    RuleTable,
    Seconds,
    Strings,
    Table,
    Text,
    TorchVersion,
)
from perflint.config.settings import DEFAULT_EXCLUDES, OutputFormat, Profile
from perflint.findings import Confidence, Severity
from perflint.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """One setting."""

    name: str
    kind: Kind
    default: Any
    """The value if no place sets it; None if there is none."""

    @property
    def about(self) -> str:
        """What it does, in a sentence or two."""
        return _texts()[self.name]["about"]

    @property
    def example(self) -> str:
        """A value as TOML, if the default is not a good example."""
        return _texts()[self.name].get("example", "")

    @property
    def attribute(self) -> str:
        """The name of the field of `Options`."""
        return self.name.replace("-", "_")


@cache
def _texts() -> dict[str, dict[str, str]]:
    # Only documents and `perflint config` need them.
    import tomllib

    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        Key("extend", Text("the path of a file"), None),
        Key("select", Strings(), ("ALL",)),
        Key("extend-select", Strings(extends=True), ()),
        Key("ignore", Strings(extends=True), ()),
        Key("per-file-ignores", PatternTable("a table from path patterns to lists of rules", Strings()), ()),
        Key("profile", Choice(Profile), Profile.DEFAULT),
        Key("torch-version", TorchVersion(), None),
        Key("exclude", PathPatterns(), DEFAULT_EXCLUDES),
        Key("extend-exclude", PathPatterns(extends=True), ()),
        Key("output-format", Choice(OutputFormat), OutputFormat.FULL),
        Key(
            "rule-url",
            Text("an http or file address with {name} or {code}", r"(?:https?|file)://\S*\{(?:name|code)\}\S*"),
            None,
        ),
        Key("baseline", Text("the path of a file"), None),
        Key("severity", Table("a table from rules to severities", Choice(Severity)), ()),
        Key("min-severity", Choice(Severity), Severity.INFO),
        Key("min-confidence", Choice(Confidence), Confidence.LOW),
        Key("fixable", Strings(), ("ALL",)),
        Key("unfixable", Strings(extends=True), ()),
        Key("require-reasons", Flag(), False),
        Key("respect-comments", Flag(), True),
        Key("time-limit", Seconds(), 300),
        Key("hot-functions", Names(), ()),
        Key("cold-functions", Names(), ()),
        Key("sync-functions", Names(), ()),
        Key("gpu-functions", Names(), ()),
        Key("sync-free-functions", Names(), ()),
        Key("src", Strings(extends=True), ()),
        Key("house-rules", Modules(), ()),
        Key("rule", RuleTable(), ()),
    )
}
"""All settings, in the order in which documents list them."""
SELECTION = ("select", "extend-select", "ignore")
"""The settings that make a `Selection`."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a file with settings, for editors."""
    properties = {
        key.name: {
            **key.kind.schema(),
            "description": key.about,
            **({} if key.default in (None, ()) else {"default": plain(key.default)}),
        }
        for key in KEYS.values()
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Settings of perflint: perflint.toml, or [tool.perflint] in pyproject.toml",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def plain(value: Any) -> Any:
    """A value of a setting as a value of JSON."""
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value

"""The table of all settings: the reader, `perflint config`, the documents and the JSON Schema are made of it."""

from __future__ import annotations

from enum import Enum
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
    about: str
    """What it does, in a sentence or two."""
    example: str = ""
    """A value as TOML, if the default is not a good example."""

    @property
    def attribute(self) -> str:
        """The name of the field of `Options`."""
        return self.name.replace("-", "_")


KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        Key(
            "extend",
            Text("the path of a file"),
            None,
            "A file whose settings count where this file sets none. Its path is relative to this file, its patterns "
            "to the project. Lists that extend others, and tables, are joined.",
            '"../perflint.toml"',
        ),
        Key(
            "select",
            Strings(),
            ("ALL",),
            "Only these rules: codes, beginnings of codes, names or `ALL`.",
            '["TPF1", "scalar-read-in-loop"]',
        ),
        Key("extend-select", Strings(extends=True), (), "These rules too.", '["TPF503"]'),
        Key("ignore", Strings(extends=True), (), "Not these rules.", '["eager-format"]'),
        Key(
            "per-file-ignores",
            PatternTable("a table from path patterns to lists of rules", Strings()),
            (),
            "The rules that are off in files that match a pattern.",
            '{ "tests/**" = ["ALL"] }',
        ),
        Key(
            "profile",
            Choice(Profile),
            Profile.DEFAULT,
            "How much is shown: `default` likely problems on hot paths, `pedantic` also minor ones and rarely run "
            "code, `audit` everything.",
            '"pedantic"',
        ),
        Key("torch-version", TorchVersion(), None, "The oldest torch that the code must run with.", '"2.6"'),
        Key(
            "exclude",
            PathPatterns(),
            DEFAULT_EXCLUDES,
            "Leave out these files and folders, as in `.gitignore`, in place of the default list.",
            '["third_party"]',
        ),
        Key("extend-exclude", PathPatterns(extends=True), (), "Leave out these too.", '["*_pb2.py"]'),
        Key("output-format", Choice(OutputFormat), OutputFormat.FULL, "How findings are written.", '"concise"'),
        Key(
            "rule-url",
            Text("an http or file address with {name} or {code}", r"(?:https?|file)://\S*\{(?:name|code)\}\S*"),
            None,
            "The address of the pages of rules, with `{name}` or `{code}` for the rule. Output links to it.",
            '"https://docs.example.org/perflint/rules/{name}"',
        ),
        Key(
            "baseline",
            Text("the path of a file"),
            None,
            "The file of known findings, which `perflint check` does not show (`perflint baseline` writes it).",
            '"perflint-baseline.json"',
        ),
        Key(
            "severity",
            Table("a table from rules to severities", Choice(Severity)),
            (),
            "The severity of the findings of these rules, in place of the one that perflint derives from "
            "measurements. The most specific rule counts.",
            '{ TPF204 = "error", "TPF9" = "info" }',
        ),
        Key(
            "min-severity",
            Choice(Severity),
            Severity.INFO,
            "Show no findings of a lower severity.",
            '"warning"',
        ),
        Key(
            "min-confidence",
            Choice(Confidence),
            Confidence.LOW,
            "Show no findings of a lower confidence.",
            '"high"',
        ),
        Key("fixable", Strings(), ("ALL",), "Fix only findings of these rules.", '["TPF2", "TPF9"]'),
        Key("unfixable", Strings(extends=True), (), "Fix no findings of these rules.", '["TPF204"]'),
        Key(
            "require-reasons",
            Flag(),
            False,
            "Report comments that silence findings without a reason (TPF983).",
            "true",
        ),
        Key(
            "respect-comments",
            Flag(),
            True,
            "False to show findings that comments silence, as `--no-ignores` does.",
            "false",
        ),
        Key(
            "time-limit",
            Seconds(),
            300,
            "The seconds of processor time that the check of one file may take. A longer check ends with an error; the "
            "other files are checked.",
            "60",
        ),
        Key(
            "hot-functions",
            Names(),
            (),
            "Functions of the project that run in each step: the end of their full name, such as `Trainer.step`, with "
            "`*` for any characters but dots.",
            '["Trainer.run_batch", "collate_*"]',
        ),
        Key(
            "cold-functions",
            Names(),
            (),
            "Functions of the project that rarely run. `hot-functions` wins over it.",
            '["export_*", "tools.debug.dump"]',
        ),
        Key(
            "sync-functions",
            Names(),
            (),
            "Functions, of the project or of libraries, that wait for the GPU; their calls are reported (TPF137).",
            '["mylib.to_cpu", "Meter.value"]',
        ),
        Key(
            "gpu-functions",
            Names(),
            (),
            "Functions, of the project or of libraries, whose result is a tensor on the GPU.",
            '["mylib.fused_norm"]',
        ),
        Key(
            "sync-free-functions",
            Names(),
            (),
            "Functions of the project that must not wait for the GPU, as if `@perflint.sync_free` marked them: waits "
            "in them are errors (warnings if the tensor may be on the CPU), and `perflint trace` ends with 1 if one of "
            "their calls waits.",
            '["Decoder.step", "sample_*"]',
        ),
        Key(
            "src",
            Strings(extends=True),
            (),
            "Folders from which the imports of the project start, relative to the project. perflint finds folders of "
            "packages and `src` by itself.",
            '["lib", "services/common"]',
        ),
        Key(
            "house-rules",
            Modules(),
            (),
            "Modules with rules of your own ([house rules](house-rules.md)), installed beside perflint. A check "
            "imports them, so that their code runs.",
            '["acme_rules"]',
        ),
        Key(
            "rule",
            RuleTable(),
            (),
            "The options of single rules, by code or name. The page of a rule (`perflint rule RULE`) lists them.",
            "{ TPF351 = { multiple = 16 }, many-scalars = { fewest = 4 } }",
        ),
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

"""Show the settings that are in force and where each comes from, or explain a setting."""

from __future__ import annotations

import json
import sys
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from perflint.cli import options
from perflint.config.effective import Effective, effective
from perflint.config.errors import ConfigurationError
from perflint.config.keys import KEYS, plain
from perflint.config.outside import places, variable
from perflint.config.pyproject import known_key
from perflint.config.settings import Options
from perflint.engine.rulebook import settings_schema
from perflint.output.terminal import Style, columns

_LINE = 80


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint config`."""
    parser.add_argument("keys", nargs="*", metavar="KEY")
    parser.add_argument("--path", default=".", metavar="PATH")
    parser.add_argument("--schema", action="store_true")
    parser.add_argument("--output-format", choices=["text", "json"], default="text", help="(default: text)")
    options.add_settings(parser.add_argument_group("settings"))
    options.add_colour(parser)


def run(arguments: Namespace) -> int:
    """Print the settings. Raises ConfigurationError for a setting that does not exist."""
    if arguments.schema:
        json.dump(settings_schema(), sys.stdout, indent=2)
        sys.stdout.write("\n")
        return 0
    for name in arguments.keys:
        known_key(name, f"no setting `{name}`")
    if "extend" in arguments.keys:
        raise ConfigurationError("`extend` has no value of its own", KEYS["extend"].about)
    found, _ = places([arguments.path], arguments.config or (), arguments.isolated)
    shown = [each for each in effective(found) if not arguments.keys or each.key.name in arguments.keys]
    style = options.style(arguments, sys.stdout)
    if arguments.output_format == "json":
        json.dump({each.key.name: _object(each) for each in shown}, sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif arguments.keys:
        sys.stdout.write("\n".join(_explained(each, style) for each in shown))
    else:
        print_settings(found)
    return 0


def print_settings(found: Sequence[Options]) -> None:
    """Print the settings that some places make, as TOML, with the origin of each."""
    sys.stdout.writelines(f"{each.toml()}\n" for each in effective(found))


def _object(each: Effective) -> dict[str, object]:
    value = None if each.value is None else each.key.kind.shown(each.value)
    return {
        "value": plain(each.value) if not isinstance(each.value, tuple) else value,
        "toml": value,
        "origins": list(each.origins),
        "about": each.key.about,
    }


def _explained(each: Effective, style: Style) -> str:
    key = each.key
    lines = [style(key.name, "bold")]
    lines += textwrap.wrap(key.about, columns(sys.stdout) or _LINE, initial_indent="  ", subsequent_indent="  ")
    value = "not set" if each.value is None else f"{key.kind.shown(each.value)} ({', '.join(each.origins)})"
    default = "none" if key.default is None else key.kind.shown(key.default)
    facts = {
        "value": value,
        "default": default,
        "kind": key.kind.expected,
        "example": f"{key.name} = {key.example}" if key.example else "",
        "variable": variable(key.name),
    }
    lines += [f"  {style(f'{name}:', 'bold')} {text}" for name, text in facts.items() if text]
    return "\n".join(lines) + "\n"

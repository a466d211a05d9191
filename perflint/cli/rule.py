"""Explain a rule, or list the rules whose codes begin alike."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from perflint.cli import options
from perflint.config.errors import ConfigurationError, did_you_mean, known_code
from perflint.config.outside import settings_of
from perflint.config.selection import selects
from perflint.engine.rulebook import all_rules
from perflint.output.measured import measured
from perflint.output.pages import explanation, facts, page, table
from perflint.rules import registry
from perflint.rules.base import Rule


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint rule`."""
    parser.add_argument("rule", metavar="RULE")
    parser.add_argument("--output-format", choices=["text", "json"], default="text", help="(default: text)")
    parser.add_argument("--measured", action="store_true")
    options.add_settings(parser.add_argument_group("settings"))
    options.add_colour(parser)


def run(arguments: Namespace) -> int:
    """Print the page of a rule, or a line for each rule of a family."""
    # Rules of perflint need no settings, which may have faults.
    rules: Sequence[Rule] = registry.all_rules()
    if not _family(arguments.rule, rules) and not _named(arguments.rule, rules):
        rules = all_rules(settings_of(".", arguments.config or (), arguments.isolated))
    family = _family(arguments.rule, rules)
    if family:
        print_rules(family, arguments)
        return 0
    rule = _find(arguments.rule, rules)
    if arguments.output_format == "json":
        json.dump(facts(rule) | {"page": page(rule)}, sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif arguments.measured or not measured(rule):
        sys.stdout.write(page(rule))
    else:
        more = f"`perflint rule {rule.code} --measured` adds the table of measurements."
        sys.stdout.write(f"{explanation(rule)}\n\n{more}\n")
    return 0


def print_rules(rules: Sequence[Rule], arguments: Namespace) -> None:
    """Print a line for each rule, or a list of their facts as JSON."""
    if arguments.output_format == "json":
        json.dump([facts(rule) for rule in rules], sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(table(rules, options.style(arguments, sys.stdout)))


def _family(wanted: str, rules: Sequence[Rule]) -> list[Rule]:
    """The rules whose codes begin with a text that is not a whole code; empty if it is something else."""
    prefix = wanted.upper()
    if not re.fullmatch(r"[A-Z]{2,4}\d{0,2}", prefix):
        return []
    return [rule for rule in rules if selects(prefix, rule.code, rule.name)]


def _named(wanted: str, rules: Sequence[Rule]) -> Rule | None:
    """The rule of a code or name."""
    return next((rule for rule in rules if wanted.upper() == rule.code or wanted.lower() == rule.name), None)


def _find(wanted: str, rules: Sequence[Rule]) -> Rule:
    rule = _named(wanted, rules)
    if rule is None:
        help = (
            known_code(wanted, (rule.code for rule in rules))
            or did_you_mean(wanted, (rule.name for rule in rules))
            or "`perflint rules` lists all rules"
        )
        raise ConfigurationError(f"no rule `{wanted}`", help)
    return rule

"""Explain a rule."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace

from perflint.config.errors import ConfigurationError, did_you_mean
from perflint.output.pages import facts, page
from perflint.rules.base import Rule
from perflint.rules.registry import all_rules


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint rule`."""
    parser.add_argument("rule", metavar="RULE", help="a code or a name")
    parser.add_argument("--output-format", choices=["text", "json"], default="text", help="(default: text)")


def run(arguments: Namespace) -> int:
    """Print the page of a rule."""
    rule = _find(arguments.rule)
    if arguments.output_format == "json":
        json.dump(facts(rule) | {"page": page(rule)}, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(page(rule))
    return 0


def _find(wanted: str) -> Rule:
    rules = {key: rule for rule in all_rules() for key in (rule.code, rule.name)}
    rule = rules.get(wanted) or rules.get(wanted.upper()) or rules.get(wanted.lower())
    if rule is None:
        help = did_you_mean(wanted, rules) or "`perflint rules` lists all rules"
        raise ConfigurationError(f"no rule `{wanted}`", help)
    return rule

"""List the rules."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from perflint.cli import options
from perflint.cli.rule import print_rules
from perflint.config.outside import settings_of
from perflint.config.selection import choose
from perflint.engine.rulebook import all_rules, names


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint rules`."""
    options.add_selectors(parser)
    options.add_settings(parser.add_argument_group("settings"))
    parser.add_argument("--output-format", choices=["text", "json"], default="text", help="(default: text)")
    options.add_colour(parser)


def run(arguments: Namespace) -> int:
    """Print a line for each rule, also of house rules. Raises ConfigurationError for selectors that name no rule."""
    settings = settings_of(".", arguments.config or (), arguments.isolated)
    chosen = choose([options.selection(arguments)], names(settings))
    print_rules([rule for rule in all_rules(settings) if rule.code in chosen], arguments)
    return 0

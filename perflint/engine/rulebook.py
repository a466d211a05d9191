"""The rules that the settings of a project name: those of perflint, and house rules."""

from __future__ import annotations

from collections.abc import Mapping

from perflint.config.settings import Settings
from perflint.rules import registry
from perflint.rules.base import Rule


def known_rules(settings: Settings) -> tuple[Rule, ...]:
    """Every rule, by code, without importing rules of perflint. Raises ConfigurationError for faults of house rules."""
    return _with_house_rules(registry.known_rules(), settings)


def all_rules(settings: Settings) -> tuple[Rule, ...]:
    """Every rule, imported, by code. Raises ConfigurationError for faults of house rules."""
    return _with_house_rules(registry.all_rules(), settings)


def names(settings: Settings) -> Mapping[str, str]:
    """The name of every code. Raises ConfigurationError for faults of house rules."""
    if not settings.house_rules:
        return registry.names()
    return {rule.code: rule.name for rule in known_rules(settings)}


def _with_house_rules(rules: tuple[Rule, ...], settings: Settings) -> tuple[Rule, ...]:
    if not settings.house_rules:
        return rules
    # Most projects have none, and do not pay for the import.
    from perflint.engine.house import house_rules

    return (*rules, *house_rules(settings.house_rules))

"""The rules that the settings of a project name: those of perflint and house rules, with their options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perflint.config.errors import ConfigurationError, did_you_mean, known_code
from perflint.config.keys import json_schema
from perflint.config.selection import canonical
from perflint.config.settings import OptionValue, Settings
from perflint.rules import registry
from perflint.rules.base import Option, Rule


def known_rules(settings: Settings) -> tuple[Rule, ...]:
    """Every rule, by code, without importing rules of perflint. Raises ConfigurationError for faults of house rules."""
    return _of(registry.known_rules(), settings)


def all_rules(settings: Settings) -> tuple[Rule, ...]:
    """Every rule, imported, by code. Raises ConfigurationError for faults of house rules."""
    return _of(registry.all_rules(), settings)


def names(settings: Settings) -> Mapping[str, str]:
    """The name of every code. Raises ConfigurationError for faults of house rules."""
    if not settings.house_rules:
        return registry.names()
    return {rule.code: rule.name for rule in known_rules(settings)}


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of a file with settings, with the options of all rules of perflint."""
    schema = json_schema()
    options = {rule: _schema(rule.options) for rule in registry.all_rules() if rule.options}
    known = {key: options[rule] for rule in options for key in (rule.code, rule.name)}
    schema["properties"]["rule"] |= {"properties": known}
    return schema


def _schema(options: tuple[Option, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {each.name: _value_schema(each) | {"description": each.about} for each in options},
    }


def _value_schema(option: Option) -> dict[str, Any]:
    default = option.default
    if isinstance(default, tuple):
        return {"type": "array", "items": {"type": "string"}, "default": list(default)}
    if isinstance(default, (bool, str)):
        return {"type": "boolean" if isinstance(default, bool) else "string", "default": default}
    return {"type": "integer", "minimum": option.least, "default": default}


def _of(rules: tuple[Rule, ...], settings: Settings) -> tuple[Rule, ...]:
    """Some rules of perflint with house rules and the options of the settings."""
    if settings.house_rules:
        # Most projects have none, and do not pay for the import.
        from perflint.engine.house import house_rules

        rules = (*rules, *house_rules(settings.house_rules))
    return _configured(rules, settings) if settings.rule else rules


def _configured(rules: tuple[Rule, ...], settings: Settings) -> tuple[Rule, ...]:
    """The rules with the options that the settings give them. Raises ConfigurationError."""
    by_key = {key: rule for rule in rules for key in (rule.code, rule.name)}
    chosen: dict[str, dict[str, OptionValue]] = {}
    for key, values in settings.rule:
        rule = by_key.get(key) or by_key.get(canonical(key))
        if rule is None:
            help = known_code(key, (rule.code for rule in rules)) or did_you_mean(key, (rule.name for rule in rules))
            raise ConfigurationError(
                f"unknown rule `{key}` in `rule`", help or "write the code or the name of one rule"
            )
        known = {option.name: option for option in rule.configured({}).options}
        for name, value in values:
            chosen.setdefault(rule.code, {})[name] = _checked(rule, known, name, value)
    return tuple(rule.configured(chosen[rule.code]) if rule.code in chosen else rule for rule in rules)


def _checked(rule: Rule, known: Mapping[str, Option], name: str, value: OptionValue) -> OptionValue:
    """The value of an option. Raises ConfigurationError if the rule has no such option, or not with such a value."""
    option = known.get(name)
    if option is None:
        names = f"options of {rule.code}: {', '.join(known)}" if known else f"{rule.code} has no options"
        raise ConfigurationError(
            f"unknown option `{name}` of {rule.code} in `rule`", did_you_mean(name, known) or names
        )
    kind = type(option.default)
    if type(value) is not kind or (isinstance(value, int) and value < option.least):
        least = f" from {option.least}" if kind is int else ""
        raise ConfigurationError(f"`{name}` of {rule.code} in `rule` must be {_KINDS[kind]}{least}", option.about)
    return value


_KINDS = {bool: "true or false", int: "a whole number", str: "a text", tuple: "a list of strings"}

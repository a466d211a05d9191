"""The pages and the table of rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from inspect import cleandoc
from typing import Any

from perflint.config.kinds import quoted
from perflint.config.settings import OptionValue
from perflint.findings import Safety, Severity
from perflint.output.measured import measured
from perflint.output.terminal import Style
from perflint.rules.base import Rule

_FIX_SAFETY = re.compile(r"^## Fix safety\s+(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_WHAT = re.compile(r"^## What it does\s+(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r".+?[.:](?= [A-Z`]|$)")
_SAFETIES = {
    Safety.SAFE: re.compile(r"\bsafe\b", re.IGNORECASE),
    Safety.UNSAFE: re.compile(r"\bunsafe\b", re.IGNORECASE),
    Safety.RISKY: re.compile(r"\brisky\b", re.IGNORECASE),
    Safety.DISPLAY: re.compile(r"\bdisplay[- ]only\b", re.IGNORECASE),
}


def page(rule: Rule) -> str:
    """The page of a rule in Markdown: a title, the facts in a line, its docstring, and its measurements."""
    return "\n\n".join(filter(None, (explanation(rule), measured(rule)))) + "\n"


def explanation(rule: Rule) -> str:
    """The page of a rule without its measurements and without a line end."""
    details = [f"severity {rule.severity.value}", f"effect {rule.effect.value}", _fix_words(rule)]
    bounds = _bounds(rule)
    details += [bounds] if bounds else []
    details += [f"a house rule of `{rule.origin}`"] if rule.origin else []
    line = f"{', '.join(details).capitalize()}.{_replaces(rule)}{_deprecation(rule)}"
    return "\n\n".join(filter(None, (f"# {rule.name} ({rule.code})", line, _text(rule), _options(rule))))


def _options(rule: Rule) -> str:
    """The section about the options of a rule; empty if it has none."""
    if not rule.options:
        return ""
    lines = [f"- `{each.name}` (default: {_shown(each.default)}): {each.about}" for each in rule.options]
    return "\n".join(["## Options", f"In `[tool.perflint.rule.{rule.code}]`:", "", *lines])


def _shown(value: OptionValue) -> str:
    return f"`{quoted(value)}`"


def summary(rule: Rule) -> str:
    """The first sentence of the page of a rule."""
    found = _WHAT.search(_text(rule))
    text = " ".join((found[1] if found else _text(rule)).split())
    sentence = _SENTENCE.match(text)
    return sentence[0] if sentence else text


def facts(rule: Rule) -> dict[str, Any]:
    """The facts about a rule besides its page, as JSON values."""
    return {
        "code": rule.code,
        "name": rule.name,
        "family": _family(rule),
        "severity": rule.severity.value,
        "effect": rule.effect.value,
        "fixes": [safety.value for safety in fix_safeties(rule)],
        "replaces": list(rule.replaces),
        "since": _version(rule.since),
        "until": _version(rule.until),
        "options": {each.name: _plain(rule.option(each.name)) for each in rule.options},
    }


def table(rules: Sequence[Rule], style: Style) -> str:
    """A line for each rule, under a heading, in columns."""
    rows = [["CODE", "NAME", "AT MOST", "EFFECT", "FIXES", "NOTES"], *(_row(rule) for rule in rules)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "".join(f"{line}\n" for line in [style(lines[0], "bold"), *lines[1:]])


def fix_safeties(rule: Rule) -> tuple[Safety, ...]:
    """The kinds of fixes that a rule has, by the words of that section of its page; none if it says "No fix"."""
    section = _FIX_SAFETY.search(_text(rule))
    if section is None or section[1].startswith("No fix"):
        return ()
    return tuple(safety for safety, word in _SAFETIES.items() if word.search(section[1]))


def _row(rule: Rule) -> list[str]:
    notes = ["shown by --profile pedantic"] if rule.severity is Severity.INFO else []
    bounds = _bounds(rule)
    notes += [bounds] if bounds else []
    notes += [f"of {rule.origin}"] if rule.origin else []
    fixes = "/".join(safety.value for safety in fix_safeties(rule)) or "-"
    return [rule.code, rule.name, rule.severity.value, rule.effect.value, fixes, ", ".join(notes)]


def _text(rule: Rule) -> str:
    # Python leaves docstrings out under -OO.
    return cleandoc(rule.document or "Python runs without docstrings (-OO), which rules' pages are.")


def _fix_words(rule: Rule) -> str:
    return " and ".join(safety.value for safety in fix_safeties(rule)) + " fixes" if fix_safeties(rule) else "no fix"


def _replaces(rule: Rule) -> str:
    """The sentence about the rules whose findings it replaces; empty if it replaces none."""
    if not rule.replaces:
        return ""
    return f" At a place that several rules report, it replaces the findings of {', '.join(rule.replaces)}."


def _deprecation(rule: Rule) -> str:
    if not rule.is_deprecation:
        return ""
    return (
        " The default profile shows it once in a file, and only if the project states a torch that deprecates the name"
        f" (`torch>={_version(rule.since)}` in its requirements, or `torch-version`)."
    )


def _family(rule: Rule) -> str:
    return rule.origin or rule.module.split(".")[-2]


def _bounds(rule: Rule) -> str:
    since = f"since torch {_version(rule.since)}" if rule.since else ""
    until = f"before torch {_version(rule.until)}" if rule.until else ""
    return " and ".join(bound for bound in (since, until) if bound)


def _plain(value: OptionValue) -> object:
    return list(value) if isinstance(value, tuple) else value


def _version(version: tuple[int, int] | None) -> str | None:
    return f"{version[0]}.{version[1]}" if version else None

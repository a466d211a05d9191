"""The pages and the table of rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from inspect import cleandoc
from typing import Any

from perflint.findings import Safety, Severity
from perflint.output.terminal import Style
from perflint.rules.base import Rule

_FIX_SAFETY = re.compile(r"^## Fix safety\n+\s*(\w+)", re.MULTILINE)
_SAFETIES = {"safe": Safety.SAFE, "unsafe": Safety.UNSAFE, "display": Safety.DISPLAY, "no": None, "none": None}


def page(rule: Rule) -> str:
    """The page of a rule in Markdown: a title, the facts in a line, and its docstring."""
    details = [f"severity {rule.severity.value}", f"effect {rule.effect.value}", _fix_words(rule)]
    bounds = _bounds(rule)
    details += [bounds] if bounds else []
    return f"# {rule.name} ({rule.code})\n\n{', '.join(details).capitalize()}.\n\n{_text(rule)}\n"


def facts(rule: Rule) -> dict[str, Any]:
    """What there is to know of a rule besides its page, as values of JSON."""
    safety = fix_safety(rule)
    return {
        "code": rule.code,
        "name": rule.name,
        "family": _family(rule),
        "severity": rule.severity.value,
        "effect": rule.effect.value,
        "fix": safety.value if safety else None,
        "since": _version(rule.since),
        "until": _version(rule.until),
    }


def table(rules: Sequence[Rule], style: Style) -> str:
    """A line for each rule, under a heading, in columns."""
    rows = [["CODE", "NAME", "SEVERITY", "EFFECT", "FIX", "NOTES"], *(_row(rule) for rule in rules)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "".join(f"{line}\n" for line in [style(lines[0], "bold"), *lines[1:]])


def fix_safety(rule: Rule) -> Safety | None:
    """How safe the rule's fixes are, by the first word of that section of its page; None where it has none."""
    found = _FIX_SAFETY.search(_text(rule))
    return _SAFETIES.get(found[1].lower()) if found else None


def _row(rule: Rule) -> list[str]:
    safety = fix_safety(rule)
    notes = ["shown by --profile pedantic"] if rule.severity is Severity.INFO else []
    bounds = _bounds(rule)
    notes += [bounds] if bounds else []
    fix = safety.value if safety else "-"
    return [rule.code, rule.name, rule.severity.value, rule.effect.value, fix, ", ".join(notes)]


def _text(rule: Rule) -> str:
    # Python leaves docstrings out under -OO.
    return cleandoc(type(rule).__doc__ or "Python runs without docstrings (-OO), which rules' pages are.")


def _fix_words(rule: Rule) -> str:
    safety = fix_safety(rule)
    return f"fix {safety.value}" if safety else "no fix"


def _family(rule: Rule) -> str:
    return type(rule).__module__.split(".")[-2]


def _bounds(rule: Rule) -> str:
    since = f"since torch {_version(rule.since)}" if rule.since else ""
    until = f"before torch {_version(rule.until)}" if rule.until else ""
    return " and ".join(bound for bound in (since, until) if bound)


def _version(version: tuple[int, int] | None) -> str | None:
    return f"{version[0]}.{version[1]}" if version else None

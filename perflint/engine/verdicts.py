"""What each rule decided of a line, and what became of that decision."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules, holds, rules_for_file
from perflint.engine.crashes import Crash, contained
from perflint.engine.profiles import STRICTER, shows
from perflint.findings import Confidence, Effect, Finding, Heat, Problem, Severity, Span
from perflint.frozen import dataclass
from perflint.rules.base import Rule
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.model import Model
from perflint.semantics.operations import quoted
from perflint.semantics.sites import CallSite, FileSite, Site, SubscriptSite, device_confidence
from perflint.semantics.values import Unknown, Value
from perflint.source.suppressions import Suppressions


class Decision(Enum):
    """What became of a rule's look at a place."""

    SHOWN = "shown"
    HIDDEN = "hidden"
    """By the profile."""
    SUPPRESSED = "suppressed"
    """By a comment."""
    OFF = "off"
    """A finding of a rule that the settings turn off."""
    NOTHING = "no finding"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One rule's decision about one place. `why` is empty for findings that are shown."""

    code: str
    name: str
    span: Span
    decision: Decision
    why: str
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class _Look:
    """A rule's look at a site. `nominated` says whether it went on to the code."""

    rule: Rule
    site: Site
    nominated: bool
    findings: tuple[Finding, ...]


def verdicts(model: Model, settings: Settings, line: int, column: int | None, problems: list[Problem]) -> list[Verdict]:
    """The decisions about a line, or about what stands at a column of it: findings first, then by code.

    All rules are asked, those that settings turn off too. Their crashes are added to `problems`.
    Raises ConfigurationError for selectors that name no rule.
    """
    judge = _Judge(model, settings)
    looks = list(_looks(model, problems))
    found = [
        judge.of(look.rule, finding)
        for look in looks
        for finding in look.findings
        if _is_at(finding.span, line, column)
    ]
    reported = {verdict.span: verdict.code for verdict in reversed(found)}
    finders = {verdict.code for verdict in found}
    for look in looks:
        if not look.findings and not isinstance(look.site, FileSite) and _is_at(look.site.span, line, column):
            if judge.is_on(look.rule) and look.rule.code not in finders:
                found.append(_nothing(look, reported))
    order = list(Decision)
    return sorted(found, key=lambda verdict: (order.index(verdict.decision), verdict.code, verdict.span))


def _looks(model: Model, problems: list[Problem]) -> Iterator[_Look]:
    rules = RuleSet(all_rules())
    for site in model.sites():
        for rule in rules.listening(site):
            look = _look(rule, site, problems)
            if look is not None:
                yield look


def _look(rule: Rule, site: Site, problems: list[Problem]) -> _Look | None:
    def describe() -> Crash:
        line = None if isinstance(site, FileSite) else site.node.lineno
        return f"rule {rule.code} ({rule.name})", line, "please report this, with the code of that line"

    with contained(problems, site.model.source.path, describe):
        nominated = rule.nominate(site)
        return _Look(rule, site, nominated, _found(rule, site) if nominated else ())
    return None


def _found(rule: Rule, site: Site) -> tuple[Finding, ...]:
    node = None if isinstance(site, FileSite) else site.model.source.concrete(site.node)
    return tuple(rule.check(node, site))  # type: ignore[arg-type]


def _is_at(span: Span, line: int, column: int | None) -> bool:
    """Whether a span begins in a line, or, with a column, covers that place."""
    if column is None:
        return span.line == line
    return (span.line, span.column) <= (line, column) < (span.end_line, span.end_column)


class _Judge:
    """Applies settings and comments to findings, as a check does."""

    def __init__(self, model: Model, settings: Settings) -> None:
        self._settings = settings
        self._suppressions = Suppressions(model.source)
        active = active_rules(settings)
        self._active = {rule.code for rule in active.rules}
        self._here = {rule.code for rule in rules_for_file(active, settings, model.source.path).rules}

    def is_on(self, rule: Rule) -> bool:
        """Whether a rule is on for the file."""
        return rule.code in self._here

    def of(self, rule: Rule, finding: Finding) -> Verdict:
        """What becomes of a finding."""
        decision, why = self._decide(rule, finding)
        return Verdict(rule.code, rule.name, finding.span, decision, why, finding)

    def _decide(self, rule: Rule, finding: Finding) -> tuple[Decision, str]:
        if not self.is_on(rule):
            return Decision.OFF, self._why_off(rule)
        if self._suppressions.cover(finding):
            everywhere = replace(finding, span=Span(0, 1, 0, 1))
            is_for_file = self._suppressions.cover(everywhere)
            return Decision.SUPPRESSED, f"by a comment {'for the whole file' if is_for_file else 'on the line'}"
        profile = self._settings.profile
        if shows(profile, finding):
            return Decision.SHOWN, ""
        shown_by = next(stricter for stricter in STRICTER[profile] if shows(stricter, finding))
        return Decision.HIDDEN, f"{_why_hidden(profile, finding)}; `--profile {shown_by.value}` shows it"

    def _why_off(self, rule: Rule) -> str:
        version = self._settings.torch_version
        if rule.code in self._active:
            return "`per-file-ignores` turns the rule off for this file"
        if holds(rule, version):
            return "the rule is not selected"
        if rule.since is not None and version is not None and version < rule.since:
            return f"the rule holds from torch {_dotted(rule.since)} on, and the code is to run with {_dotted(version)}"
        return f"the rule holds only before torch {_dotted(rule.until or (0, 0))}"


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _why_hidden(profile: Profile, finding: Finding) -> str:
    reasons = []
    if finding.confidence is Confidence.LOW:
        reasons.append("confidence is low")
    if profile is Profile.DEFAULT:
        if finding.heat is Heat.COLD:
            reasons.append("the code seldom runs")
        if finding.severity is Severity.INFO:
            reasons.append("severity is info")
    return " and ".join(reasons)


# Why there is no finding


def _nothing(look: _Look, reported: dict[Span, str]) -> Verdict:
    rule, span = look.rule, look.site.span
    other = reported.get(span)
    if other is not None and other != rule.code:
        why = f"{other} finds something here"
    elif rule.effect is Effect.SYNC and _waits_for_tensors(look.site):
        why = _nothing_to_wait_for(look.site)
    else:
        why = ""
    if not why:
        why = "nothing in the code is what it looks for" if look.nominated else "the facts above rule it out"
    return Verdict(rule.code, rule.name, span, Decision.NOTHING, why)


def _waits_for_tensors(site: Site) -> bool:
    """Whether what happens at a site can only wait for the tensors in it."""
    return not isinstance(site, CallSite) or site.target.startswith(("torch.Tensor.", "builtins."))


def _nothing_to_wait_for(site: Site) -> str:
    """Why the host waits for nothing at a site; empty where something may be on the device."""
    operands = list(_operands(site))
    if any(device_confidence(site.value(operand)) is not None for operand in operands):
        return ""
    reasons = [f"{quoted(site.text(operand))} is {_no_device_tensor(site.value(operand))}" for operand in operands[:2]]
    return " and ".join(dict.fromkeys(reasons))


def _operands(site: Site) -> Iterable[ast.expr]:
    if isinstance(site, SubscriptSite):
        return [site.node.value]
    if not isinstance(site, CallSite):
        return [site.node]
    receiver = [site.node.func.value] if isinstance(site.node.func, ast.Attribute) else []
    given = [arg for arg in site.node.args if not isinstance(arg, (ast.Constant, ast.Starred))]
    return [*receiver, *given] if site.target.startswith("torch.Tensor.") else given


def _no_device_tensor(value: Value) -> str:
    if value.tensor is not None:
        return "on the host"
    is_open = any(isinstance(member, Unknown) for member in value.members)
    return "not known to be a tensor" if is_open else "no tensor"

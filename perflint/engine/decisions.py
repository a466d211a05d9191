"""The decision of each rule about a line, and its further fate."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from enum import Enum

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules, holds, rules_for_file
from perflint.engine.declared import SYNC, declared_findings
from perflint.engine.deprecations import once_per_file
from perflint.engine.looks import look
from perflint.engine.places import placed
from perflint.engine.profiles import STRICTER, shows
from perflint.engine.rulebook import all_rules
from perflint.engine.thresholds import settled
from perflint.findings import Confidence, Effect, Finding, Heat, Problem, Severity, Span
from perflint.frozen import dataclass
from perflint.rules.base import Rule
from perflint.rules.precedence import most_precise, speaking
from perflint.rules.registry import RuleSet
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite, FileSite, Site, SubscriptSite, device_confidence
from perflint.semantics.values import Value
from perflint.source.quoting import quoted
from perflint.source.suppressions import Comment, Reach, Suppressions

_REACHES = {Reach.LINE: "on the line", Reach.BLOCK: "for the block", Reach.FILE: "for the whole file"}


class Outcome(Enum):
    """The result of a rule's look at a place."""

    SHOWN = "shown"
    HIDDEN = "hidden"
    """By the profile."""
    SUPPRESSED = "suppressed"
    """By a comment."""
    OFF = "off"
    """A finding of a rule that the settings turn off."""
    NOTHING = "no finding"


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of one rule about one place. `why` is empty for findings that are shown."""

    code: str
    name: str
    span: Span
    outcome: Outcome
    why: str
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class _Look:
    """The findings of a rule at a site."""

    rule: Rule
    site: Site
    findings: tuple[Finding, ...]


def decisions(
    model: Model, settings: Settings, line: int, column: int | None, problems: list[Problem]
) -> list[Decision]:
    """The decisions about a line, or about what stands at a column of it: findings first, then by code.

    All rules are asked, those that settings turn off too. Their crashes are added to `problems`.
    Raises ConfigurationError for selectors that name no rule.
    """
    judge = _Judge(model, settings)
    looks = list(_looks(model, settings, problems))
    rules = {made.rule.code: made.rule for made in looks}
    on = [finding for made in looks if judge.is_on(made.rule) for finding in made.findings]
    off = [finding for made in looks if not judge.is_on(made.rule) for finding in made.findings]
    for rule in judge.rules.rules:
        if rule.code == SYNC:
            rules[SYNC] = rule
            on += declared_findings(model, judge.rules)
    # A rule that is off does not replace others, and would not speak where another replaces it.
    spoken = speaking(on, rules.values())
    findings = once_per_file(spoken.findings, rules.values(), settings.torch_version, judge.comment)
    silent = {id(each.finding) for each in most_precise([*on, *off], rules.values()).replaced}
    found = [
        judge.of(rules[finding.code], finding)
        for finding in (*findings, *(each for each in off if id(each) not in silent))
        if _is_at(finding.span, line, column)
    ]
    reported = {decision.span: decision.code for decision in reversed(found)}
    finders = {decision.code for decision in found}
    for each in spoken.replaced:
        if _is_at(each.finding.span, line, column) and each.finding.code not in finders:
            rule, span = rules[each.finding.code], each.finding.span
            found.append(Decision(rule.code, rule.name, span, Outcome.NOTHING, _speaks(each.by)))
    for made in looks:
        if not made.findings and not isinstance(made.site, FileSite) and _is_at(made.site.span, line, column):
            if judge.is_on(made.rule) and made.rule.code not in finders:
                found.append(_nothing(made, reported))
    order = list(Outcome)
    return sorted(found, key=lambda decision: (order.index(decision.outcome), decision.code, decision.span))


def _looks(model: Model, settings: Settings, problems: list[Problem]) -> Iterator[_Look]:
    rules = RuleSet(all_rules(settings))
    for site in model.sites():
        for rule in rules.listening(site):
            known = len(problems)
            findings = look(rule, site, settings.torch_version, problems)
            if len(problems) == known:
                yield _Look(rule, site, findings)


def _is_at(span: Span, line: int, column: int | None) -> bool:
    """True if a span begins in a line, or, with a column, covers that place."""
    return span.line == line if column is None else span.covers(line, column)


class _Judge:
    """Applies settings and comments to findings, as a check does."""

    def __init__(self, model: Model, settings: Settings) -> None:
        self._model = model
        self._settings = settings
        self._suppressions = Suppressions(model.source, counts=settings.respect_comments)
        active = active_rules(settings)
        self._active = {rule.code for rule in active.rules}
        self.rules = rules_for_file(active, settings, model.source.path)
        """The rules that are on for the file."""
        self._here = {rule.code for rule in self.rules.rules}

    def is_on(self, rule: Rule) -> bool:
        """True if a rule is on for the file."""
        return rule.code in self._here

    def comment(self, finding: Finding) -> Comment | None:
        """The comment that silences a finding."""
        return self._suppressions.silencer(finding)

    def of(self, rule: Rule, finding: Finding) -> Decision:
        """The decision about a finding."""
        outcome, why = self._decide(rule, finding)
        (finding,) = placed([finding], [rule], self._model)
        kept = settled([finding], self._settings)
        if outcome is Outcome.SHOWN and not kept:
            outcome, why = Outcome.HIDDEN, "the settings show no findings of its severity or confidence"
        finding = kept[0] if kept else finding
        return Decision(rule.code, rule.name, finding.span, outcome, why, finding)

    def _decide(self, rule: Rule, finding: Finding) -> tuple[Outcome, str]:
        if not self.is_on(rule):
            return Outcome.OFF, self._why_off(rule)
        comment = self.comment(finding)
        if comment is not None:
            reason = f": {comment.reason}" if comment.reason else ""
            return Outcome.SUPPRESSED, f"by a comment {_REACHES[comment.reach]}{reason}"
        profile = self._settings.profile
        if shows(profile, finding):
            return Outcome.SHOWN, ""
        shown_by = next(stricter for stricter in STRICTER[profile] if shows(stricter, finding))
        return Outcome.HIDDEN, f"{_why_hidden(profile, finding)}; `--profile {shown_by.value}` shows it"

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
            reasons.append("the code rarely runs")
        if finding.severity is Severity.INFO:
            reasons.append(_why_information(finding))
    return " and ".join(reasons)


def _why_information(finding: Finding) -> str:
    judgement = finding.judgement
    return judgement.reason if judgement is not None and judgement.is_information else "severity is info"


# Why there is no finding


def _nothing(made: _Look, reported: dict[Span, str]) -> Decision:
    rule, span = made.rule, made.site.span
    other = reported.get(span)
    if other is not None and other != rule.code:
        why = _speaks(other)
    elif rule.effect is Effect.SYNC and _waits_for_tensors(made.site):
        why = _nothing_to_wait_for(made.site)
    else:
        why = ""
    return Decision(rule.code, rule.name, span, Outcome.NOTHING, why or "this is not the pattern that it looks for")


def _speaks(code: str) -> str:
    return f"{code} finds something here"


def _waits_for_tensors(site: Site) -> bool:
    """True if what happens at a site can only wait for the tensors in it."""
    return not isinstance(site, CallSite) or site.target.startswith(("torch.Tensor.", "builtins."))


def _nothing_to_wait_for(site: Site) -> str:
    """Why the CPU does not wait at a site; empty if a value in it may be on the GPU."""
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
        return "on the CPU"
    return "not known to be a tensor" if value.is_open else "no tensor"

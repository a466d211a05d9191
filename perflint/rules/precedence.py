"""Decides which rule reports a place that several rules find.

Each rule finds every place of its kind. The decision is made once, among the findings of the rules that are
selected, so that a general rule reports a place if the more precise one is turned off.

A precise rule replaces general ones, which it declares (`Rule.replaces`): the read of each element of a tensor is
also a read of a number. A grave effect replaces others: in compiled code a read of a tensor also breaks the graph,
and a CUDA graph cannot capture it at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perflint.findings import Confidence, Effect, Finding, Span, surest
from perflint.frozen import dataclass, replace
from perflint.rules.base import Rule
from perflint.semantics.structure import grouped

_IMPLIED = {
    Effect.GRAPH_BREAK: (Effect.SYNC,),
    Effect.CAPTURE: (Effect.SYNC, Effect.TRANSFER),
}
"""The effects that each grave effect implies."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A finding that is not reported, because another rule reports its place."""

    finding: Finding
    by: str
    """The code of the rule that reports it."""


@dataclass(frozen=True, slots=True)
class Speaking:
    """The findings of a file with one claim for each place, and those that they replace."""

    findings: list[Finding]
    replaced: list[Replaced]


def speaking(findings: Sequence[Finding], rules: Iterable[Rule]) -> Speaking:
    """The findings of a file that are reported; `rules` are the rules that made them."""
    precise = most_precise(findings, rules)
    graver = _gravest(precise.findings)
    return Speaking(graver.findings, [*precise.replaced, *graver.replaced])


def most_precise(findings: Sequence[Finding], rules: Iterable[Rule]) -> Speaking:
    """The findings without those of general rules at an expression that a precise rule reports.

    The precise finding is as sure as the general one, and takes its fix if it has none.
    """
    replaces = {rule.code: rule.replaces for rule in rules if rule.replaces}
    general = {code for codes in replaces.values() for code in codes}
    places = grouped(((each.code, each.span), each) for each in findings if each.code in general)
    if not places:
        return Speaking(list(findings), [])
    replaced: dict[int, Replaced] = {}
    spoken: list[tuple[Finding, Finding]] = []
    for finding in findings:
        stronger = finding
        for code in replaces.get(finding.code, ()):
            for other in places.get((code, finding.span), ()):
                replaced.setdefault(id(other), Replaced(other, finding.code))
                confidence = surest(stronger.confidence, other.confidence)
                stronger = replace(stronger, confidence=confidence, fix=stronger.fix or other.fix)
            for other in (other for part in finding.parts for other in places.get((code, part), ())):
                replaced.setdefault(id(other), Replaced(other, finding.code))
        spoken.append((finding, stronger))
    kept = [stronger for finding, stronger in spoken if id(finding) not in replaced]
    return Speaking(kept, list(replaced.values()))


def _gravest(findings: Sequence[Finding]) -> Speaking:
    """The findings with one claim for each place that waits in a graph: the grave one, with the fix of the other."""
    graver = [finding for finding in findings if finding.effect in _IMPLIED]
    replaced: dict[int, Replaced] = {}
    changed: dict[int, Finding] = {}
    waits = _by_line(findings if graver else ())
    for claim in graver:
        implied = _IMPLIED[claim.effect]
        near = [findings[number] for number in sorted({n for line in _lines(claim.span) for n in waits.get(line, ())})]
        same = [each for each in near if each.effect in implied and each.span.overlaps(claim.span)]
        if not same:
            continue
        sure = next((wait for wait in same if wait.confidence is not Confidence.LOW), None)
        if claim.confidence is Confidence.LOW and sure is not None:
            replaced[id(claim)] = Replaced(claim, sure.code)
            continue
        replaced.update((id(wait), Replaced(wait, claim.code)) for wait in same)
        fix = next((wait.fix for wait in same if wait.fix is not None), None)
        if claim.fix is None and fix is not None:
            changed[id(claim)] = replace(claim, fix=fix)
    kept = [changed.get(id(finding), finding) for finding in findings if id(finding) not in replaced]
    return Speaking(kept, list(replaced.values()))


def _by_line(findings: Sequence[Finding]) -> dict[int, list[int]]:
    """The indices of findings by each line of their places."""
    return grouped((line, number) for number, finding in enumerate(findings) for line in _lines(finding.span))


def _lines(span: Span) -> range:
    return range(span.line, span.end_line + 1)

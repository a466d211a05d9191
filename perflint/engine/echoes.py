"""Findings that repeat the claim of another finding at the same place.

A read of a tensor makes the CPU wait. In compiled code the read also breaks the graph, and a CUDA graph cannot
capture it at all. The more severe claim stays, with the fix of the other. Some rules describe one wait more
precisely than a general rule does: the precise claim stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perflint.findings import Confidence, Effect, Finding, surest

_ECHOES = {
    Effect.GRAPH_BREAK: (Effect.SYNC,),
    Effect.CAPTURE: (Effect.SYNC, Effect.TRANSFER),
}
"""The effects that each of the graver claims implies."""
_GENERAL = {"TPF121": "TPF105", "TPF125": "TPF101"}
"""The codes of precise rules, each with the general rule that claims the same wait."""


def without_echoes(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of a file with one claim for each wait."""
    return _one_for_each_graph(_most_precise(findings))


def _most_precise(findings: Sequence[Finding]) -> list[Finding]:
    """The findings without those of general rules at an expression that a precise rule reports."""
    general = {(each.code, each.span): each for each in findings if each.code in _GENERAL.values()}
    repeated: set[int] = set()
    kept: list[Finding] = []
    for finding in findings:
        other = general.get((_GENERAL.get(finding.code, ""), finding.span))
        if other is not None:
            repeated.add(id(other))
            confidence = surest(finding.confidence, other.confidence)
            finding = replace(finding, confidence=confidence, fix=finding.fix or other.fix)
        kept.append(finding)
    return [finding for finding in kept if id(finding) not in repeated]


def _one_for_each_graph(findings: Sequence[Finding]) -> list[Finding]:
    """The findings with one claim for each place that waits in a graph."""
    graver = [finding for finding in findings if finding.effect in _ECHOES]
    if not graver:
        return list(findings)
    dropped: set[int] = set()
    changed: dict[int, Finding] = {}
    for claim in graver:
        echoed = _ECHOES[claim.effect]
        same = [each for each in findings if each.effect in echoed and each.span.overlaps(claim.span)]
        if not same:
            continue
        if claim.confidence is Confidence.LOW and any(wait.confidence is not Confidence.LOW for wait in same):
            dropped.add(id(claim))
            continue
        dropped.update(map(id, same))
        fix = next((wait.fix for wait in same if wait.fix is not None), None)
        if claim.fix is None and fix is not None:
            changed[id(claim)] = replace(claim, fix=fix)
    return [changed.get(id(finding), finding) for finding in findings if id(finding) not in dropped]

"""Findings that say again what another says of the same place.

A read of a tensor makes the host wait; in compiled code it breaks the graph besides, and in a CUDA graph it
cannot be captured at all. The graver claim speaks, and takes over the cure of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perflint.findings import Confidence, Effect, Finding

_ECHOES = {
    Effect.GRAPH_BREAK: (Effect.SYNC,),
    Effect.CAPTURE: (Effect.SYNC, Effect.TRANSFER),
}
"""What each of the graver claims says again."""


def without_echoes(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of a file with one claim for each place that waits in a graph."""
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

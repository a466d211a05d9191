"""TPF199: waits of recorded steps at which no rule reports anything."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Finding
from perflint.rules.traced.traced_sync import TracedSync
from perflint.source.quoting import quoted
from perflint.tracer.unseen.base import Facts

HELP = "No rule knows this wait from the source: `perflint explain` shows what was inferred."


def find(facts: Facts) -> Iterator[Finding]:
    """The findings of a file."""
    for span, sync, verdict in facts.waits:
        if not sync.hits.steps or sync.allowed or sync.origin:
            continue
        if not any(span.overlaps(finding.span) for finding in facts.findings):
            message = f"{quoted(facts.source.segment(span))} makes the CPU wait for the GPU"
            yield facts.finding(TracedSync, span, message, HELP, verdict)

"""TPF199: waits of recorded steps at which no rule reports anything."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Finding
from perflint.rules.traced.traced_sync import TracedSync
from perflint.source.quoting import quoted
from perflint.tracer.unseen.base import Facts

HELP = "No rule knows this wait from the source: `perflint explain` shows what was inferred."
HELP_OF_FALLBACKS = "A newer torch may have the kernel. Otherwise compute the result with other operators."


def find(facts: Facts) -> Iterator[Finding]:
    """The findings of a file."""
    for span, sync, verdict in facts.waits:
        if not sync.hits.steps or sync.allowed or sync.origin:
            continue
        if not any(span.overlaps(finding.span) for finding in facts.findings):
            text, is_fallback = quoted(facts.source.segment(span)), sync.kind == "fallback"
            why = "runs on the CPU: the GPU has no kernel for it" if is_fallback else "makes the CPU wait for the GPU"
            help = HELP_OF_FALLBACKS if is_fallback else HELP
            yield facts.finding(TracedSync, span, f"{text} {why}", help, verdict)

"""TPF194: activations that are computed twice although the GPU has room for them."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Finding
from perflint.rules.traced.needless_recomputation import NeedlessRecomputation
from perflint.source.quoting import quoted
from perflint.tracer.events import AllocatorChurn
from perflint.tracer.judges.base import in_words, times
from perflint.tracer.unseen.base import Facts, confirmed

SPARE = 0.5
"""The peak must be below this share of the memory of the GPU."""
ROOM = 0.7
"""With all recomputed activations kept, the peak must be below this share."""
HELP = "Compute without checkpointing, or checkpoint fewer blocks."


def find(facts: Facts) -> Iterator[Finding]:
    """The findings of a file."""
    whole, again = facts.of_process("memory.device"), facts.of_process("recomputation.kept")
    peak = max((churn.peak_bytes for churn in facts.trace.of(AllocatorChurn)), default=0)
    if whole is None or again is None or not again.hits.steps or not peak or facts.trace.header.simulated:
        return
    needed = peak + again.bytes
    if peak >= SPARE * whole.bytes or needed > ROOM * whole.bytes:
        return
    for span, seen in facts.of("recomputation.called"):
        per_step = seen.hits.steps / facts.steps
        if per_step >= 0.5:
            message = f"{quoted(facts.source.segment(span))} computes activations twice, and there is room to keep them"
            why = (
                f"{times(per_step)} a step; the peak was {in_words(peak)} of {in_words(whole.bytes)}, and the "
                f"recomputed activations take {in_words(again.bytes)}"
            )
            yield facts.finding(NeedlessRecomputation, span, message, HELP, confirmed(why, per_step))

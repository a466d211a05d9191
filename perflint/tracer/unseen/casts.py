"""TPF193: float32 weights that are cast to 16 bits again and again."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Finding
from perflint.rules.traced.weight_cast_each_call import WeightCastEachCall
from perflint.source.quoting import quoted
from perflint.tracer.judges.base import times
from perflint.tracer.unseen.base import Facts, bytes_per_step, confirmed

HELP = "Convert the weights once, when they have been loaded, or keep the result until they change."


def find(facts: Facts) -> Iterator[Finding]:
    """The findings of a file."""
    for span, seen in facts.of("weight.cast-again"):
        per_step = seen.hits.steps / facts.steps
        if per_step >= 0.5:
            text = quoted(facts.source.segment(span))
            message = f"{text} casts a float32 weight to 16 bits that has not changed since it was cast before"
            size = bytes_per_step(seen, facts.steps)
            why = f"unchanged weights were cast again {times(per_step)} a step: {size} were written in each"
            yield facts.finding(WeightCastEachCall, span, message, HELP, confirmed(why, per_step))

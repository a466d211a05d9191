"""TPF191: calls of a module that compute the same once more in each step."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Finding
from perflint.rules.traced.repeated_forward import RepeatedForward
from perflint.source.quoting import quoted
from perflint.tracer.unseen.base import Facts, confirmed

FEWEST = 2
"""The least number of steps in which repetitions must have been looked for."""
HELP = "Keep the result of the first call and use it again."


def find(facts: Facts) -> Iterator[Finding]:
    """The findings of a file."""
    watched = facts.of_process("forward.watched")
    steps = watched.hits.steps if watched is not None else 0
    if steps < FEWEST:
        return
    for span, seen in facts.of("forward.repeated"):
        if seen.hits.steps >= steps:
            message = f"{quoted(facts.source.segment(span))} computes what an earlier call of the step has computed"
            why = f"{seen.detail} had equal arguments and weights in each of {steps} steps"
            yield facts.finding(RepeatedForward, span, message, HELP, confirmed(why, 1.0))

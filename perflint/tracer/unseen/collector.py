"""TPF192: pauses of Python's garbage collector in recorded steps."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from perflint.findings import Finding
from perflint.rules.traced.collector_pause import CollectorPause
from perflint.source.quoting import quoted
from perflint.tracer.events import Header, Observation, Step
from perflint.tracer.judges.base import times, total
from perflint.tracer.trace import Trace
from perflint.tracer.unseen.base import Facts, confirmed

LEAST = 0.03
"""The share of a step from which pauses are reported: that of a warning."""
FEWEST = 2
"""A single pause does not show how often there is one."""
HELP = (
    "Call `gc.freeze()` after set-up, so that the collector skips the objects that stay; or `gc.disable()`, and "
    "`gc.collect()` every few hundred steps."
)
HELP_ASKED = "Call `gc.collect()` less often: it looks through all objects of the program."


def find(facts: Facts) -> Iterator[Finding]:
    """The finding of a file, if most of the pauses were there."""
    trace = facts.trace
    step_ms = trace.step_ms
    seen = [each for each in trace.of(Observation) if each.fact == "collector.full" and each.place]
    counts = [_in_steps(trace.header, each) for each in seen]
    count = sum(counts)
    # A simulated step takes the time of a CPU.
    if count < FEWEST or not step_ms or trace.header.simulated:
        return
    ms = sum(each.ms * often / total(each) for each, often in zip(seen, counts, strict=True)) / facts.steps
    ms = min(ms, _idle_ms(trace, ms))
    share = ms / step_ms
    most = max(zip(counts, seen, strict=True), key=lambda each: (each[0], each[1].ms))[1]
    for span, each in facts.of("collector.full"):
        if each is most and share >= LEAST:
            text = facts.source.segment(span)
            is_asked = "collect(" in text
            message = f"full garbage collections pause the program, most of them at {quoted(text)}"
            often = times(count / facts.steps)
            why = f"they took {ms:.3g} ms of {step_ms:.3g} ms a step ({share:.0%}), {often} a step"
            verdict = confirmed(why, count / facts.steps, ms, share)
            yield facts.finding(CollectorPause, span, message, HELP_ASKED if is_asked else HELP, verdict)


def _in_steps(header: Header, seen: Observation) -> int:
    """The hits in steps that ended, without the first one if the set-up of the program counts as a part of it."""
    windows = seen.hits.windows
    return sum(windows[0 if header.warmup else 1 : header.steps]) if header.steps_per_window == 1 else seen.hits.steps


def _idle_ms(trace: Trace, otherwise: float) -> float:
    """The idle time of the GPU in a step, as far as it is known: the cost of a pause cannot be more."""
    idle = [step.idle_ms for step in trace.of(Step) if step.profiled]
    return median(idle) * trace.idle_share if idle else otherwise

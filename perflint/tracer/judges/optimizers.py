"""Rules about optimizers, gradients and loops over parameters."""

from __future__ import annotations

import ast

from perflint.findings import Ruling, Span, Verdict
from perflint.tracer.events import Observation
from perflint.tracer.judges.base import Case, Judge, by_facts, confirmed, refuted, times, total

_ONE_BY_ONE = {"optimizer.one-by-one": "{detail} were updated one by one"}
_GROUPED = {"optimizer.foreach": "{detail} were updated in groups"}
_FUSED = {"optimizer.fused": "{detail} were updated in fused kernels"}
_ON_CPU = Verdict(
    Ruling.UNDECIDED, "the parameters were on the CPU; trace on a GPU, or with `perflint trace --simulate`"
)
_COUNTERS = {
    "optimizer.counters-on-gpu": "{detail}: the counters of the step were on the GPU",
    "optimizer.counters-on-cpu": "{detail}: the counters of the step were on the CPU",
}
FEW = 4
"""Updates of single tensors in a step below which a loop over parameters costs no more than one call."""


def _unfused(case: Case) -> Verdict | None:
    loops = "one by one" in case.finding.message
    against = {**_GROUPED, **_FUSED} if loops else _FUSED
    verdict = by_facts(_ONE_BY_ONE if loops else {**_ONE_BY_ONE, **_GROUPED}, against)(case)
    return verdict or (_ON_CPU if case.facts("optimizer.on-cpu") else None)


def _counters(case: Case) -> Verdict | None:
    """The state is loaded at one place, and stepped by an optimizer that another one constructs."""
    seen = [each for each in case.trace.of(Observation) if each.fact in _COUNTERS]
    on_gpu = [each for each in seen if each.fact == "optimizer.counters-on-gpu"]
    if on_gpu:
        return confirmed(case, _COUNTERS, on_gpu, of=sum(map(total, seen)))
    return refuted(_COUNTERS, seen) if seen else None


def _one_by_one(case: Case) -> Verdict | None:
    """The finding is at the iterable of a loop, the updates are in its body."""
    body = _body(case)
    if body is None:
        return None
    on_gpu, on_cpu = (case.facts(f"tensor.updated-{device}", within=body) for device in ("gpu", "cpu"))
    if not on_gpu:
        return Verdict(Ruling.REFUTED, "the updated tensors were on the CPU") if on_cpu else None
    count = sum(each.hits.steps for each in on_gpu) / case.steps
    said = f"{times(count)} a step, the loop changed one tensor on the GPU"
    if not count:
        return Verdict(Ruling.NO_COST, "the loop changed tensors on the GPU, but in no recorded step")
    return Verdict(Ruling.CONFIRMED if count >= FEW else Ruling.NO_COST, said, per_step=count)


def _body(case: Case) -> Span | None:
    """The lines of the loop whose iterable the finding is at."""
    for node in ast.walk(case.source.tree):
        if isinstance(node, ast.For) and case.source.span(node.iter) == case.finding.span:
            first, last = case.source.span(node.body[0]), case.source.span(node.body[-1])
            return Span(first.line, first.column, last.end_line, last.end_column)
    return None


JUDGES: dict[str, Judge] = {
    "TPF601": _unfused,
    "TPF602": by_facts(
        {
            "gradients.zeroed": "{detail} were filled with zeros, {bytes}",
            "tensor.zeroed": "one gradient after another was filled with zeros",
        },
        {"gradients.freed": "no gradient was kept"},
    ),
    "TPF603": _one_by_one,
    "TPF607": by_facts(
        {"optimizer.capturable": "the steps of {detail} were counted on the GPU, and no CUDA graph captured them"},
        {"optimizer.captured": "a CUDA graph captured the step", **_FUSED},
    ),
    "TPF608": _counters,
}
WAITS_ELSEWHERE = frozenset({"TPF608"})
"""The findings are where the state is loaded; the step waits."""

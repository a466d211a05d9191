"""Rules about operations that have a faster form: attention, recurrent cells, sorts, distances, logarithms."""

from __future__ import annotations

from collections.abc import Sequence

from perflint.findings import Ruling, Verdict
from perflint.tracer.events import Observation
from perflint.tracer.judges.base import Case, Judge, in_words, times, total
from perflint.tracer.modules import STEPS

_OF_MODULES = ("attention.", "cell.", "softmax.module")
"""The facts about calls of modules."""
_ON_HOST = " on the CPU"
SORTED = 8 * 50304 * 2
"""The bytes of the logits whose sort took nothing measurable of a step of GPT-2 decoding."""


def rate(case: Case, seen: Sequence[Observation]) -> float:
    """How often a step does something. The calls of modules are only watched in the first recorded steps.

    Of the first step, some or all may have been before the steps were recognized.
    """
    if not any(each.fact.startswith(_OF_MODULES) for each in seen):
        return case.per_step(seen)
    watched = min(case.steps, STEPS)
    if case.trace.header.steps_per_window == 1 and all(each.hits.windows for each in seen):
        first = min(next((at for at, hits in enumerate(each.hits.windows) if hits), 0) for each in seen)
        watched -= min(first, watched - 1)
    return sum(each.hits.steps for each in seen) / watched


def happened(case: Case, seen: Sequence[Observation], text: str) -> Verdict:
    """The verdict on something that happened: at no cost outside of steps, and on the CPU of a run with a GPU."""
    on_gpu = [each for each in seen if not each.detail.endswith(_ON_HOST)]
    if not on_gpu and case.has_gpu:
        return Verdict(Ruling.REFUTED, "it ran on the CPU, which keeps no GPU waiting")
    per_step = rate(case, on_gpu or seen)
    most = max(on_gpu or seen, key=lambda each: (each.hits.steps, each.bytes))
    text = text.format(detail=most.detail, bytes=in_words(most.bytes))
    if not per_step:
        return Verdict(Ruling.NO_COST, f"{text}, but in no recorded step")
    return Verdict(Ruling.CONFIRMED, f"{text}, {times(per_step)} a step", per_step=per_step)


def _by(confirms: dict[str, str], refutes: dict[str, str]) -> Judge:
    """A judge for the first of some facts that was seen at the place of a finding."""

    def judge(case: Case) -> Verdict | None:
        for fact, text in confirms.items():
            if seen := case.facts(fact):
                return happened(case, seen, text)
        for fact, text in refutes.items():
            if seen := case.facts(fact):
                return Verdict(Ruling.REFUTED, text.format(detail=seen[0].detail))
        return None

    return judge


def _cell(case: Case) -> Verdict | None:
    seen = case.facts("cell.step")
    if not seen:
        return None
    if sum(map(total, seen)) < 2 or 0 < rate(case, seen) <= 1:
        return Verdict(Ruling.REFUTED, f"a step ran it once: {seen[0].detail}")
    return happened(case, seen, "the loop ran {detail}")


def _log(case: Case) -> Verdict | None:
    if seen := case.facts("log.of-probabilities"):
        return happened(case, seen, "{bytes} of probabilities were written and read again: {detail}")
    others = case.facts("log.of-others")
    # A guard such as `p + 1e-8` may hide the softmax behind other functions.
    if not others or "+" in case.source.segment(case.finding.span):
        return None
    return Verdict(Ruling.REFUTED, f"its argument is not the result of a softmax: {others[0].detail}")


def _sort(case: Case) -> Verdict | None:
    sorts = case.facts("sort.all")
    if many := case.facts("sort.many"):
        if not case.facts("sort.few"):
            return Verdict(Ruling.REFUTED, f"much of the result is used: {many[0].detail}")
    if not sorts:
        return None
    few = case.facts("sort.few")
    kept = f", of which {few[0].detail}" if few else ""
    verdict = happened(case, sorts, "a sort of {detail}" + kept.replace("{", ""))
    is_small = max(each.bytes for each in sorts) <= SORTED and verdict.per_step <= 1.05
    if verdict.ruling is Ruling.CONFIRMED and is_small:
        why = f"{verdict.why}; a sort of 8 × 50304 took nothing measurable of a step on an H200"
        return Verdict(Ruling.NO_COST, why, per_step=verdict.per_step)
    return verdict


JUDGES: dict[str, Judge] = {
    "TPF302": _by(
        {"attention.weights": "weights of {detail} were computed"},
        {
            "attention.hooked": "a hook of the program gets the weights",
            "attention.no-weights": "no weights were computed",
        },
    ),
    "TPF303": _by(
        {
            "softmax.matrix": "weights of {detail}, {bytes}, were written to memory",
            "softmax.module": "weights of {detail}, {bytes}, were written to memory",
        },
        {"softmax.other": "the softmax was of a vector, or over another dimension: {detail}"},
    ),
    "TPF304": _cell,
    "TPF306": _log,
    "TPF309": _sort,
    "TPF310": _by(
        {"reduction.last": "{bytes} of differences were written to memory: {detail}"},
        {"reduction.other": "it reduced no differences of all pairs: {detail}"},
    ),
}

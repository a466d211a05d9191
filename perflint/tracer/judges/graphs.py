"""Rules about retained graphs, checkpoints, and gradients that nothing reads."""

from __future__ import annotations

from perflint.findings import Ruling, Verdict
from perflint.tracer.judges.base import Case, Judge, confirmed, in_words, refuted

_NOT_USED = {"backward.graph-not-used-again": "no other backward pass went through the graph"}
_USED = {"backward.graph-used-again": "another backward pass went through the graph"}
_FORMS = {
    "checkpoint.reentrant": "the reentrant form ran",
    "checkpoint.reentrant-autocast": "the reentrant form ran under autocast",
    "checkpoint.without-gradient": "no input required a gradient, so that the parameters inside got none",
}
_OTHER_FORMS = {
    "checkpoint.other-form": "the form without reentrance ran",
    "checkpoint.nothing": "nothing inside required a gradient, so nothing was recomputed",
}


def _retained(case: Case) -> Verdict | None:
    """TPF305: a retained graph that no other backward pass uses."""
    used, unused = case.facts(*_USED), case.facts(*_NOT_USED)
    if used:
        return refuted(_USED, used)
    if not unused:
        return None
    verdict = confirmed(case, _NOT_USED, unused)
    size = max(each.bytes for each in unused)
    why = f"{verdict.why}; it held {in_words(size)}" if size else verdict.why
    return Verdict(verdict.ruling, why, per_step=verdict.per_step)


def _checkpoint(case: Case) -> Verdict | None:
    """TPF307: the reentrant form, which was faster than the other under autocast."""
    seen = case.facts(*_FORMS)
    if not seen:
        others = case.facts(*_OTHER_FORMS)
        return refuted(_OTHER_FORMS, others) if others else None
    verdict = confirmed(case, _FORMS, seen)
    if {each.fact for each in seen} == {"checkpoint.reentrant-autocast"}:
        why = f"{verdict.why}: there it was the faster form when both were measured"
        return Verdict(Ruling.NO_COST, why, per_step=verdict.per_step)
    return verdict


def _frozen(case: Case) -> Verdict | None:
    """TPF308: a misspelt attribute, or an optimizer that reads a part of the gradients."""
    text = case.source.segment(case.finding.span)
    if text.endswith(")"):
        if unused := case.of_process("gradient.unused"):
            seen = unused[0]
            why = f"{seen.detail} got gradients that no optimizer read ({in_words(seen.bytes)})"
            return Verdict(Ruling.CONFIRMED, why, per_step=1.0)
        used = case.of_process("gradient.used")
        return Verdict(Ruling.REFUTED, "optimizers read all gradients") if used else None
    name = text.rpartition(".")[2]
    for seen in case.of_process("gradient.misspelt", "gradient.misspelt-frozen"):
        shares = dict(part.split(": ") for part in seen.detail.split("; "))
        if name in shares:
            is_true = seen.fact == "gradient.misspelt"
            why = f"{shares[name]} parameters with `{name}` set to `False` got gradients"
            return Verdict(Ruling.CONFIRMED if is_true else Ruling.REFUTED, why, per_step=1.0 if is_true else 0.0)
    return None


JUDGES: dict[str, Judge] = {
    "TPF305": _retained,
    "TPF307": _checkpoint,
    "TPF308": _frozen,
}

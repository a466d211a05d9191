"""Rules about several processes and several GPUs."""

from __future__ import annotations

from collections.abc import Mapping

from perflint.findings import Ruling, Verdict
from perflint.tracer.events import Observation
from perflint.tracer.judges.base import Case, Judge, by_facts, in_words, times, total

_NUMBERS = {"collective.number": "one number was sent among {detail}"}
_TENSORS = {"collective.tensor": "{bytes} were sent among {detail}"}
_WAITS = {
    "collective.barrier": "the process waited for the others of {detail}",
    "collective.objects": "pickled objects were sent among {detail}",
}
_ALONE = Verdict(Ruling.NO_COST, "the process group had one process")


def _collective(case: Case, confirms: Mapping[str, str], refutes: Mapping[str, str]) -> Verdict | None:
    verdict = by_facts(confirms, refutes)(case)
    if verdict is not None:
        return verdict
    return _ALONE if case.facts("collective.alone") else None


def _per_number(case: Case) -> Verdict | None:
    return _collective(case, _NUMBERS, _TENSORS)


def _barrier(case: Case) -> Verdict | None:
    verdict = _collective(case, _WAITS, {})
    # A wait for other processes is none for the GPU: silence about the GPU refutes nothing.
    return verdict or (Verdict(Ruling.UNDECIDED, _NO_GROUP) if case.ran else None)


def _gathered(case: Case) -> Verdict | None:
    verdict = _collective(case, {**_NUMBERS, **_TENSORS, **_WAITS}, {})
    if verdict is not None or not case.ran or "waits for all" not in case.finding.message:
        return verdict
    return _ALONE if case.trace.header.world_size == 1 else None


def _unused_parameters(case: Case) -> Verdict | None:
    """The claim is a needless search: unused parameters refute it."""
    # The option may be set elsewhere than at the wrapper.
    names = ("ddp.unused", "ddp.all-used")
    seen = case.facts(*names) or [each for each in case.trace.of(Observation) if each.fact in names]
    if unused := [each for each in seen if each.fact == "ddp.unused"]:
        size = in_words(max(each.bytes for each in unused))
        return Verdict(Ruling.REFUTED, f"parameters of {size} took no part in a step: the search is needed")
    if seen:
        return Verdict(Ruling.CONFIRMED, "all parameters took part in the recorded steps: the search found nothing")
    return None


def _accumulated(case: Case) -> Verdict | None:
    again = {"backward.reduced-again": "the gradients of {detail} were reduced again before the optimizer's step"}
    once = {"backward.reduced": "an optimizer's step followed each reduction of the gradients"}
    local = {"backward.not-reduced": "all backward passes ran under `no_sync`"}
    seen = case.facts(*again, *once)
    if seen and all(each.detail == "1 processes" for each in seen):
        return _ALONE
    return by_facts(again, once if seen else local)(case)


def _compiled_first(case: Case) -> Verdict | None:
    if case.facts("ddp.of-compiled"):
        return Verdict(Ruling.CONFIRMED, "the wrapped module was a compiled one")
    plain = case.facts("ddp.of-plain")
    return Verdict(Ruling.REFUTED, "the wrapped module was not compiled") if plain else None


def _data_parallel(case: Case) -> Verdict | None:
    replicated = {"dataparallel.replicated": "the model was copied to {detail} for a call"}
    return by_facts(replicated, {"dataparallel.one-device": "the wrapper had one device or none"})(case)


def _checkpoint(case: Case) -> Verdict | None:
    """Only another process than the first can show that more than one writes."""
    header = case.trace.header
    saved = case.facts("save.from-device", "save.from-cpu")
    if header.world_size == 1:
        return Verdict(Ruling.NO_COST, "one process ran, and wrote the file") if saved else None
    if not header.rank:
        return None
    if saved:
        count = sum(map(total, saved))
        return Verdict(Ruling.CONFIRMED, f"process {header.rank} of {header.world_size} wrote it, too, {times(count)}")
    if case.ran is False:
        return Verdict(Ruling.REFUTED, f"process {header.rank} of {header.world_size} did not come here")
    return None


JUDGES: dict[str, Judge] = {
    "TPF604": _accumulated,
    "TPF714": _compiled_first,
    "TPF921": _data_parallel,
    "TPF922": _unused_parameters,
    "TPF923": _per_number,
    "TPF924": _barrier,
    "TPF926": _checkpoint,
    "TPF944": _gathered,
}
_NO_GROUP = "no collective was seen here; trace all processes: `perflint trace -m torch.distributed.run …`"

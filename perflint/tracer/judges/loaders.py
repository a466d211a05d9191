"""Rules about loaders and about the copies of their batches."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from perflint.findings import Ruling, Verdict
from perflint.rules.worth import cost
from perflint.tracer.events import Gap, Observation
from perflint.tracer.judges.base import FREE, Case, Judge, in_words, times, total

SHORTEST_MS = 1.0
"""A training step on a GPU takes longer than this."""
_MEASURED_BYTES = 64 * 3 * 224 * 224 * 4
"""The batch with which copies were measured."""
_DATA_SET = re.compile(r"`(\w+)\.__getitem")
_IN_WORKERS = Verdict(
    Ruling.UNDECIDED, "workers run this code, and their processes are not traced; trace with `num_workers=0`"
)


def _is_timed(case: Case) -> bool:
    """True if the times of the trace are those of a GPU."""
    return bool(case.trace.header.devices) and not case.trace.header.simulated


def _hits(seen: Sequence[Observation]) -> int:
    return sum(map(total, seen))


def _anywhere(case: Case, *names: str) -> list[Observation]:
    """The observations of some facts in all files."""
    return [seen for seen in case.trace.of(Observation) if seen.fact in names]


def _of_its_loaders(case: Case, *names: str) -> list[Observation]:
    """Facts about the loaders of the data set that a finding names; about all, if none is known to be of that class."""
    named = _DATA_SET.search(case.finding.message)
    name = re.compile(rf"\b{re.escape(named[1])}\b") if named else re.compile("")
    is_known = any(name.search(seen.detail) for seen in _anywhere(case, "loader.new"))
    return [seen for seen in _anywhere(case, *names) if name.search(seen.detail) or not is_known]


def _waited(seen: Sequence[Observation], per_step: float) -> float:
    """The milliseconds that a step waits for its batches, among the steps that get any."""
    return sum(each.ms for each in seen) / max(_hits(seen), 1) * max(per_step, 1.0)


def _wait(case: Case, seen: Sequence[Observation], text: str) -> Verdict | None:
    """The verdict on waits for batches that the training process prepares."""
    per_step = sum(each.hits.steps for each in seen) / case.steps
    step, waited = case.trace.step_ms, _waited(seen, per_step)
    if not per_step or not step:
        return Verdict(Ruling.NO_COST, f"{text}, but gave no batch in a recorded step")
    text = f"{text}, and the loop waited {waited:.3g} ms of {step:.3g} ms a step for it"
    if (profiled := case.trace.profiled_steps) and _is_timed(case):
        idle = sum(gap.ms for gap in case.trace.of(Gap) if gap.cause == "loader") * case.trace.idle_share / profiled
        if idle / step < FREE:
            return Verdict(Ruling.NO_COST, f"{text}, in which the GPU had work", idle, idle / step, per_step)
        why = f"{text}, in which the GPU was idle for {idle:.3g} ms"
        return Verdict(Ruling.CONFIRMED, why, idle, idle / step, per_step)
    if waited / step >= FREE:
        return Verdict(Ruling.CONFIRMED, text, waited, waited / step, per_step)
    if _is_timed(case):
        return Verdict(Ruling.NO_COST, text, waited, waited / step, per_step)
    return Verdict(Ruling.UNDECIDED, f"{text}; only a trace on a GPU shows whether that costs anything")


def _without_workers(case: Case) -> Verdict | None:
    if case.facts("loader.workers-started"):
        return Verdict(Ruling.REFUTED, f"it ran with workers: {_options(case)}")
    if not case.facts("loader.no-workers"):
        return _not_iterated(case)
    return _wait(case, case.facts("loader.batch", "loader.first-batch"), "it ran without workers")


def _options(case: Case) -> str:
    return case.facts("loader.new", "loader.again")[0].detail


def _not_iterated(case: Case) -> Verdict | None:
    if case.ran is False:
        return None
    return Verdict(Ruling.UNDECIDED, "no iteration over this loader was seen")


def _pageable(case: Case) -> Verdict | None:
    if case.facts("loader.on-gpu"):
        return Verdict(Ruling.REFUTED, "its batches are on the GPU when it returns them")
    if pinned := case.facts("loader.pinned"):
        return Verdict(Ruling.REFUTED, f"its batches, {in_words(pinned[0].bytes)}, are in pinned memory")
    pageable = case.facts("loader.pageable")
    if not pageable:
        return _not_iterated(case)
    if not case.has_gpu:
        return Verdict(Ruling.UNDECIDED, "without a GPU nothing is copied; trace on one, or with `--simulate`")
    moved = [seen for seen in _anywhere(case, "to.other-device") if seen.detail.endswith("on cpu")]
    if not moved:
        return Verdict(Ruling.REFUTED, "no tensor was copied to the GPU")
    most = max(pageable, key=lambda each: each.bytes)
    return _copy(case, most, f"its batches, {in_words(most.bytes)}, are in pageable memory", "pageable-copy")


def _copy(case: Case, seen: Observation, text: str, row: str) -> Verdict:
    """The verdict on copies from pageable memory, by what they lose at the measured rate."""
    per_step = seen.hits.steps / case.steps
    if not per_step:
        return Verdict(Ruling.NO_COST, f"{text}, but in no recorded step")
    measured = cost(row)
    lost = (measured.bad_ms - measured.good_ms) * seen.bytes / _MEASURED_BYTES * max(per_step, 1.0)
    step = case.trace.step_ms if _is_timed(case) else None
    share = lost / max(step or 0.0, SHORTEST_MS)
    if share < FREE:
        rate = f"less than {max(1, math.ceil(lost * 1000))} µs"
        why = f"{text}; at the rate that was measured {measured.where} they lose {rate} a step"
        return Verdict(Ruling.NO_COST, why, per_step=per_step)
    return Verdict(Ruling.CONFIRMED, f"{text}, {times(per_step)} a step", per_step=per_step)


def _restarted(case: Case) -> Verdict | None:
    started = case.facts("loader.workers-started")
    if case.facts("loader.workers-kept"):
        return Verdict(Ruling.REFUTED, f"its workers stayed: {_options(case)}")
    if not started:
        is_alone = case.facts("loader.no-workers")
        return Verdict(Ruling.REFUTED, f"it ran without workers: {_options(case)}") if is_alone else _not_iterated(case)
    if _hits(started) < 2:
        return Verdict(Ruling.UNDECIDED, "its workers started once in the recorded part; trace more epochs")
    return _starts(case, f"its workers started {_hits(started)} times")


def _rebuilt(case: Case) -> Verdict | None:
    new, again = case.facts("loader.new"), case.facts("loader.again")
    if not new:
        return _not_iterated(case)
    if _hits(new) < 2:
        if again:
            return Verdict(Ruling.REFUTED, f"the program made it once and went over it {1 + _hits(again)} times")
        return Verdict(Ruling.UNDECIDED, "it was made once in the recorded part; trace more epochs")
    text = f"{_hits(new)} loaders were made here"
    if case.facts("loader.no-workers") and not case.facts("loader.pinned"):
        return Verdict(Ruling.NO_COST, f"{text}, with no workers to start and no memory to pin")
    return _starts(case, text)


def _starts(case: Case, text: str) -> Verdict:
    """The verdict on workers that start again, by the time until the first batch."""
    starts, batches = case.facts("loader.workers-started"), case.facts("loader.first-batch")
    count = max(_hits(starts), _hits(batches), 1)
    each = sum(seen.ms for seen in (*starts, *batches)) / count
    in_steps = sum(seen.hits.steps for seen in (starts or batches)) / case.steps
    text = f"{text}, and each first batch came after {each:.3g} ms"
    if not in_steps:
        return Verdict(Ruling.NO_COST, f"{text}, but in no recorded step")
    step = case.trace.step_ms or 0.0
    share = each * in_steps / step if step else None
    if _is_timed(case) and share is not None and share < FREE:
        return Verdict(Ruling.NO_COST, text, each * in_steps, share, in_steps)
    return Verdict(Ruling.CONFIRMED, text, each * in_steps, share, in_steps)


def _in_item(case: Case) -> Verdict | None:
    if moved := case.facts("item.to-gpu"):
        per_step = sum(each.hits.steps for each in moved) / case.steps
        text = "it goes to the GPU in the process that trains"
        if not per_step:
            return Verdict(Ruling.NO_COST, f"{text}, but in no recorded step")
        return Verdict(Ruling.CONFIRMED, f"{text}, {times(per_step)} a step", per_step=per_step)
    if case.facts("item.on-host"):
        on_host = Verdict(Ruling.REFUTED, "the tensor stayed on the CPU")
        return on_host if case.has_gpu else Verdict(Ruling.UNDECIDED, "without a GPU all tensors are on the CPU")
    has_workers = bool(_of_its_loaders(case, "loader.workers-started"))
    if case.facts("to.other-device"):
        if has_workers:
            return Verdict(Ruling.CONFIRMED, "it went to the GPU, and a loader with workers was iterated over")
        return Verdict(Ruling.REFUTED, "no loader had workers that read it")
    if case.facts("to.same-tensor", "to.same-device") and case.has_gpu:
        return Verdict(Ruling.REFUTED, "the tensor stayed on its device")
    return _IN_WORKERS if has_workers and not case.ran else None


def _heavy_item(case: Case) -> Verdict | None:
    if not case.ran:
        return _IN_WORKERS if _of_its_loaders(case, "loader.workers-started") else None
    batches = _of_its_loaders(case, "loader.batch", "loader.first-batch")
    alone = [seen for seen in batches if seen.detail.endswith("process that iterates")]
    return _wait(case, alone, "the process that trains runs it for its batches") if alone else None


def _last_batch(case: Case) -> Verdict | None:
    if smaller := case.facts("loader.smaller-batch"):
        return Verdict(Ruling.CONFIRMED, f"the last batch of an epoch had {smaller[0].detail} items")
    if even := case.facts("loader.even-batches"):
        return Verdict(Ruling.REFUTED, f"an epoch had {even[0].detail.replace(' of ', ' batches of ')} items each")
    if not case.facts("loader.new"):
        return _not_iterated(case)
    return Verdict(Ruling.UNDECIDED, "no epoch of several batches ended in the recorded part; trace more steps")


def _asynchronous(case: Case) -> Verdict | None:
    if pageable := case.facts("upload.pageable"):
        most = max(pageable, key=lambda each: each.bytes)
        return _copy(
            case, most, f"{in_words(most.bytes)} were copied from pageable memory", "copy-pageable-nonblocking"
        )
    if not case.has_gpu:
        return None
    if case.facts("upload.pinned"):
        return Verdict(Ruling.REFUTED, "the copy was from pinned memory, or to the CPU")
    return Verdict(Ruling.REFUTED, "the tensor stayed on its device") if case.facts("upload.none") else None


def _inline_pin(case: Case) -> Verdict | None:
    if copied := case.facts("pin.copied"):
        size = in_words(max(each.bytes for each in copied))
        measured = cost("copy-inline-pin-resnet50")
        why = f"{size} were pinned for one copy, which is no slower than a copy from pageable memory {measured.where}"
        return Verdict(Ruling.NO_COST, why, per_step=sum(each.hits.steps for each in copied) / case.steps)
    return Verdict(Ruling.REFUTED, "the tensor was pinned already") if case.facts("pin.same") else None


JUDGES: dict[str, Judge] = {
    "TPF202": _asynchronous,
    "TPF203": _inline_pin,
    "TPF401": _without_workers,
    "TPF402": _pageable,
    "TPF403": _restarted,
    "TPF404": _rebuilt,
    "TPF405": _in_item,
    "TPF406": _heavy_item,
    "TPF407": _last_batch,
}

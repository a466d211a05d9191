"""Rules about reads, files and collections of garbage that happen in each step, here or in a library."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from perflint.findings import Ruling, Span, Verdict
from perflint.tracer.events import Sync
from perflint.tracer.judges.base import NOTHING_WAITS, Case, Judge, in_words, timed, times

OFTEN = 0.5
"""The share of steps in which a line runs that is meant to run in each of them."""
_READS = re.compile(r"\.(?:item|cpu|tolist|numpy)\(")
_Named = ast.FunctionDef | ast.AsyncFunctionDef


def _collects(case: Case) -> Verdict | None:
    """The judge of `gc.collect()`, by its time. Caches that are emptied are waits, which the trace records."""
    collected = case.at_call("gc.full") if "collect(" in case.source.segment(case.finding.span) else []
    return timed(case, collected, "a full garbage collection") if collected else None


def _saves(case: Case) -> Verdict | None:
    """The judge of files that are written in each step."""
    saved = case.at_call("save.from-device", "save.from-cpu")
    if not saved:
        return _by_frequency(case, "the file was written")
    often = case.per_step(saved)
    if 0 < often < OFTEN:
        return Verdict(Ruling.REFUTED, f"the file was written {times(often)} a step, not in each one")
    return timed(case, saved, f"{in_words(saved[0].bytes)} written to a file")


def _by_frequency(case: Case, what: str) -> Verdict | None:
    """The verdict by the share of the recorded steps in which the first line of the finding ran."""
    counted = case.trace.header.line_steps
    if not counted or not case.lines:
        return None
    steps = max(line.steps for line in case.lines)
    if not steps:
        return Verdict(Ruling.NO_COST, f"{what}, but in no recorded step")
    why = f"{what} in {steps} of {counted} steps"
    is_often = steps >= OFTEN * counted
    return Verdict(Ruling.CONFIRMED if is_often else Ruling.REFUTED, why, per_step=steps / counted)


def _computes(case: Case) -> Verdict | None:
    """The judge of metrics that are computed in each step."""
    judged = _by_frequency(case, "the metric was computed")
    if judged is None and case.ran:
        return Verdict(
            Ruling.UNDECIDED, "in no recorded step were the runs of lines counted; trace with more `--steps`"
        )
    return judged


def _copies_statistics(case: Case) -> Verdict | None:
    """The judge of histograms: whether they waited for data of the GPU."""
    if "watch(" in case.source.segment(case.finding.span):
        return _by_waits(case, _with_frame(case, "/wandb/"), "wandb read the watched tensors")
    if case.waits() or not case.ran:
        return None
    if not case.has_gpu:
        return NOTHING_WAITS
    return Verdict(Ruling.REFUTED, "nothing was read from the GPU here")


def _in_hook(case: Case) -> Verdict | None:
    """The judge of hooks that read tensors: by the waits in the function that is registered."""
    bodies = list(_hooks(case))
    waits = [sync for body in bodies for sync in case.waits(body)]
    if waits or not bodies:
        return _by_waits(case, waits, "the hook waited") if waits else Verdict(Ruling.UNDECIDED, _NO_HOOK)
    if not case.ran:
        return None
    if not case.has_gpu:
        return NOTHING_WAITS
    return Verdict(Ruling.REFUTED, "the hook was registered, and nothing in it waited")


def _hooks(case: Case) -> Iterator[Span]:
    """The functions that the call of a finding registers: a lambda, or functions of the file with that name."""
    names = set(re.findall(r"[^\W\d]\w*", case.source.segment(case.finding.span)))
    for node in ast.walk(case.source.tree):
        if isinstance(node, ast.Lambda):
            span = case.source.span(node)
            if span.overlaps(case.finding.span) and _READS.search(case.source.segment(span)):
                yield span
        elif isinstance(node, _Named) and node.name in names:
            span = case.source.span(node)
            if _READS.search(case.source.segment(span)):
                yield span


def _logs(case: Case) -> Verdict | None:
    """The judge of values that Lightning reads: at the place itself, or in the code of Lightning."""
    if "item(" in case.source.segment(case.finding.span):
        return None
    if "detect_anomaly" in case.source.segment(case.finding.span):
        return Verdict(Ruling.UNDECIDED, "anomaly mode waits in the backward pass; see TPF606")
    return _by_waits(case, _with_frame(case, "lightning/pytorch/", "pytorch_lightning/"), "Lightning waited")


def _trains(case: Case) -> Verdict | None:
    """The judge of settings that make the Trainer of transformers wait: by the waits in its code."""
    return _by_waits(case, _with_frame(case, "transformers/trainer.py"), "the Trainer waited")


def _with_frame(case: Case, *parts: str) -> list[Sync]:
    """The waits of the program below the code of a library."""
    syncs = case.trace.of(Sync)
    return [sync for sync in syncs if any(part in frame for frame in (sync.inner, *sync.stack) for part in parts)]


def _by_waits(case: Case, waits: Iterable[Sync], what: str) -> Verdict | None:
    """The verdict by waits at other places than that of the finding."""
    per_step = sum(sync.hits.steps for sync in waits) / case.steps
    if per_step >= OFTEN:
        return Verdict(Ruling.CONFIRMED, f"{what}, {times(per_step)} a step", per_step=per_step)
    if not case.ran:
        return None
    if not case.has_gpu:
        return NOTHING_WAITS
    if not case.trace.header.steps:
        return Verdict(Ruling.UNDECIDED, "the run had no recorded steps")
    return Verdict(Ruling.REFUTED, f"{what} {times(per_step)} a step" if per_step else f"not once {what}")


_NO_HOOK = "the function that is registered was not found in the file"


def _synchronizes(case: Case) -> Verdict | None:
    """The judge of explicit synchronizations, if no wait was recorded: each call of a watched function is one."""
    return Verdict(Ruling.UNDECIDED, _OTHER_FUNCTION) if case.ran and case.has_gpu else None


_OTHER_FUNCTION = "its line ran, but did not call a function that a trace watches: the program may have replaced it"
JUDGES: dict[str, Judge] = {
    "TPF122": _synchronizes,
    "TPF123": _collects,
    "TPF131": _computes,
    "TPF605": _copies_statistics,
    "TPF941": _logs,
    "TPF942": _trains,
    "TPF961": _in_hook,
    "TPF963": _saves,
}
WAITS_ELSEWHERE = frozenset({"TPF131", "TPF942", "TPF961"})

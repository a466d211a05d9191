"""Rules about copies between devices and within one, and about work that a loop does element by element."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Ruling, Span, Verdict
from perflint.tracer.events import Observation
from perflint.tracer.judges.base import (
    NO_GPU,
    Case,
    Judge,
    by_facts,
    confirmed,
    function_around,
    in_words,
    on_gpu,
    refuted,
    timed,
    times,
    total,
)

FEW_ROWS = 2
"""Rows a step that a loop may compute one by one at no cost."""
SMALL = 1_000_000
"""Bytes a step that are copied again at no cost."""
FEW_TURNS = 8
_WRITTEN = {
    "copy.written": "the copy was written to",
    "copy.source-written": "the source was written to while the copy lived",
}
_NONE = {"copy.returned": "the call copied nothing: it returned its argument"}
_DATA = re.compile(r"(?<!\butils)(?<!\bself)\.data\b(?!\s*import)")


def _unwritten(case: Case) -> Verdict | None:
    """The judge of copies that nothing writes to: one write shows that they are needed."""
    if written := case.at_call(*_WRITTEN):
        return refuted(_WRITTEN, written)
    unwritten = case.at_call("copy.unwritten")
    if unwritten and _DATA.search(case.source.text):
        return Verdict(Ruling.UNDECIDED, "no write was counted, but torch does not count those through `.data`")
    if unwritten:
        return _happens(case, unwritten, "nothing was written to the copy of {} or its source while the copy lived")
    if returned := case.at_call(*_NONE):
        return refuted(_NONE, returned)
    if case.at_call("copy.kept"):
        return Verdict(Ruling.UNDECIDED, "the copy was still in use when the recording ended")
    if case.at_call("copy.unknown"):
        return Verdict(
            Ruling.UNDECIDED, "torch did not count the writes: in inference mode, or by code outside of torch"
        )
    return None


def _of_fresh(case: Case) -> Verdict | None:
    """The judge of copies of a tensor that nothing else holds."""
    held = case.at_call("copy.of-kept")
    if found := case.at_call("copy.of-temporary"):
        return _happens(case, found, "the {} that were copied were freed in the same expression")
    return refuted({"copy.of-kept": "the copied tensor was used elsewhere, too"}, held) if held else None


def _happens(case: Case, seen: list[Observation], text: str) -> Verdict:
    """The copies that were followed confirm a finding; the number of all copies says how often that happens."""
    per_step = case.per_step(case.at_call("copy.made"))
    why = text.format(in_words(max(each.bytes for each in seen)))
    if not per_step:
        return Verdict(Ruling.NO_COST, f"{why}, but in no recorded step")
    return Verdict(Ruling.CONFIRMED, f"{why}, {times(per_step)} a step", per_step=per_step)


def _grows(case: Case) -> Verdict | None:
    """The judge of tensors that grow by `torch.cat`."""
    grew, apart = case.at_call("cat.grew"), case.at_call("cat.apart")
    if not grew:
        # One iteration of a loop shows no growth.
        apart = [each for each in apart if total(each) > 1]
        return refuted({"cat.apart": "no call extended the result of an earlier one"}, apart) if apart else None
    per_step = case.per_step(grew)
    copied = sum(each.total_bytes for each in grew) / max(sum(map(total, grew)), 1) * per_step
    why = f"{in_words(round(copied))} copied again in each step, which extends the tensor {times(per_step)}"
    if not per_step:
        return Verdict(Ruling.NO_COST, "the tensor grew, but in no recorded step")
    is_small = copied < SMALL and per_step <= FEW_TURNS
    return Verdict(Ruling.NO_COST if is_small else Ruling.CONFIRMED, why, per_step=per_step)


def _row_by_row(case: Case) -> Verdict | None:
    """The judge of loops over rows, and of those that store number by number."""
    span = _loop(case) or case.finding.span
    if "number by number" in case.finding.message:
        stored = case.facts("number.stored", "number.stored-on-cpu", within=span)
        return _by_count(case, stored, "numbers stored one by one") if stored else None
    on_device = case.facts("row.read", "row.stored", "number.stored", within=span)
    if on_device:
        return _by_count(case, on_device, "rows handled one by one")
    if case.facts("row.read-on-cpu", "row.stored-on-cpu", "number.stored-on-cpu", within=span):
        on_cpu = Verdict(Ruling.REFUTED, "the rows are on the CPU, where no kernel is launched")
        return on_cpu if case.has_gpu else NO_GPU
    return None


def _by_count(case: Case, seen: list[Observation], what: str) -> Verdict:
    """The verdict by the greatest number of accesses at one place in a step."""
    per_step = max(_rate(case, each) for each in seen)
    if not per_step:
        return Verdict(Ruling.NO_COST, f"{what}, but in no recorded step")
    why = f"{per_step:.3g} {what} a step"
    return Verdict(Ruling.CONFIRMED if per_step > FEW_ROWS else Ruling.NO_COST, why, per_step=per_step)


def _rate(case: Case, seen: Observation) -> float:
    """The hits per step of the busiest window of steps, since only so many calls of a place are counted."""
    if seen.sampled or not seen.hits.windows:
        return case.per_step([seen])
    return max(seen.hits.windows) / max(case.trace.header.steps_per_window, 1)


def _loop(case: Case) -> Span | None:
    """The loop with its body whose header is the span of the finding."""
    start = case.finding.span.line, case.finding.span.column
    for node in ast.walk(case.source.tree):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            span = case.source.span(node)
            if (span.line, span.column) == start:
                return span
    return None


def _returns(case: Case) -> Verdict | None:
    """The judge of data that leaves the device and comes back: both happened in one function."""
    texts = dict.fromkeys(
        ("arrived.float64", "arrived.other-dtype", "made.float64", "made.other-dtype"),
        "{bytes} left the GPU and came back",
    )
    came = case.facts(*texts)
    around = function_around(case.source, case.finding.span, lambdas=True)
    if came and case.facts("left.device", within=around):
        return confirmed(case, texts, came)
    if came and case.facts("left.cpu", within=around):
        return Verdict(Ruling.REFUTED, "the data that came to the GPU had been on the CPU before")
    stayed = {"to.same-tensor": "the tensor was there already", "to.same-device": "the tensor stayed on its device"}
    seen = case.at_call(*stayed)
    return refuted(stayed, seen) if seen and not came else None


def _keeps_graph(case: Case) -> Verdict | None:
    """The judge of losses that are kept with their graphs: in a sum, or in a list."""
    texts = {"sum.with-graph": "the sum has a graph that grows"}
    if sums := case.facts(*texts):
        return confirmed(case, texts, sums)
    if without := case.facts("sum.without-graph"):
        return refuted({"sum.without-graph": "the sum has no graph"}, without)
    for loop in _loops(case):
        if kept := case.facts("backward.graph-kept", within=loop):
            why = "the graphs of the losses of earlier steps were still there"
            in_steps = case.per_step(kept) > 0
            return Verdict(Ruling.CONFIRMED if in_steps else Ruling.NO_COST, why, per_step=case.per_step(kept))
        if freed := case.facts("backward.graph-freed", within=loop):
            return refuted({"backward.graph-freed": "the graph of a loss was gone two steps later"}, freed)
    return None


def _loops(case: Case) -> Iterator[Span]:
    """The loops around a finding."""
    line = case.finding.span.line
    for node in ast.walk(case.source.tree):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and node.lineno <= line <= (node.end_lineno or 0):
            yield case.source.span(node)


def _arrays(case: Case) -> Verdict | None:
    """The judge of lists of arrays: by the time that torch took to read them."""
    arrays = case.at_call("list.of-arrays")
    if arrays:
        return timed(case, arrays, f"a list of arrays with {in_words(arrays[0].bytes)} read number by number")
    numbers = case.at_call("list.of-numbers")
    return refuted({"list.of-numbers": "the list held no arrays"}, numbers) if numbers else None


JUDGES: dict[str, Judge] = {
    "TPF205": on_gpu(_returns),
    "TPF206": on_gpu(
        by_facts(
            {"to.other-device": "{bytes} copied to the CPU"},
            {"to.same-tensor": "the tensor was of this type already", "to.same-device": "the tensor was on the CPU"},
        )
    ),
    "TPF207": _grows,
    "TPF208": _row_by_row,
    "TPF209": on_gpu(
        by_facts(
            {"arrived.float64": "{detail} came to the GPU", "made.float64": "{detail} came to the GPU"},
            {
                "arrived.other-dtype": "the tensor that came to the GPU was {detail}",
                "made.other-dtype": "the tensor that came to the GPU was {detail}",
                "to.same-tensor": "the tensor stayed where it was",
            },
        )
    ),
    "TPF210": _keeps_graph,
    "TPF211": _of_fresh,
    "TPF212": _unwritten,
    "TPF213": _unwritten,
    "TPF214": _arrays,
}

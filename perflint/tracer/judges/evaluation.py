"""Rules about evaluation: whether autograd recorded it in vain, in which mode the layers ran, and models that move.

An evaluation is often outside of the recorded steps: those are steps of an optimizer. So what happened outside counts
as much as what happened in steps, unless it is a single call of code that runs once.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from perflint.findings import Finding, Heat, Ruling, Span, Verdict
from perflint.source.text import Source
from perflint.tracer.events import Observation
from perflint.tracer.judges.base import FREE, Case, Judge, confirmed, in_words, refuted, times, total

FEW = 0.05
"""Less than this share of the calls confirms nothing: training may skip a backward pass now and then."""
Why = Callable[[int, Observation], str]
_NEEDLESS = ("forward.graph-dropped", "forward.graph-unread", "forward.graph-held")
_REFUTE_GRAPH = {
    "forward.graph-reached": "a backward pass used the graph of `{detail}`",
    "forward.no-graph": "nothing in `{detail}` required a gradient, so autograd recorded nothing",
    "forward.no-grad": "autograd was off when `{detail}` ran",
    "forward.inference": "inference mode was on when `{detail}` ran",
}
_REFUTE_MODE = {
    "forward.eval": "`{detail}` and all other layers that the mode matters for were in evaluation mode",
    "forward.modeless": "no layer of `{detail}` behaves differently in training",
    "forward.training-used": "a backward pass followed: it was training",
}


def _needless_graph(case: Case) -> Verdict | None:
    """TPF501: a graph that no backward pass used."""
    # While the program runs, the backward pass may still come.
    confirms = _NEEDLESS[:2] if case.trace.header.ended == "running" else _NEEDLESS
    return _evaluated(case, confirms, _REFUTE_GRAPH, _in_vain)


def _in_vain(count: int, most: Observation) -> str:
    if most.fact == "forward.graph-unread":
        return f"a backward pass went through `{most.detail}` {_times(count)}, and no optimizer read a gradient of it"
    held = f", each with {in_words(most.bytes)} for the graph" if most.bytes else ""
    return f"autograd recorded `{most.detail}` {_times(count)} in vain{held}"


def _training_mode(case: Case) -> Verdict | None:
    """TPF503: layers in training mode in a forward pass that no backward pass followed."""
    verdict = _evaluated(case, ("forward.training-unused",), _REFUTE_MODE, _in_training)
    if verdict is None and _nearest(case, *_NEEDLESS, *_REFUTE_GRAPH):
        why = "the model has no layers of torch that the mode matters for, but its own classes ask for the mode"
        return Verdict(Ruling.UNDECIDED, why)
    return verdict


def _in_training(count: int, most: Observation) -> str:
    return f"`{most.detail}` ran in training mode {_times(count)} without a backward pass"


def _evaluated(case: Case, confirms: Sequence[str], refutes: Mapping[str, str], why: Why) -> Verdict | None:
    """A verdict by the calls of modules at the place of a finding."""
    seen = _nearest(case, *confirms, *refutes)
    for_it = [each for each in seen if each.fact in confirms]
    against = [each for each in seen if each.fact in refutes]
    count, of = sum(map(total, for_it)), sum(map(total, seen))
    if not of:
        return None
    if count < FEW * of:
        return refuted(refutes, against)
    most = max(for_it, key=lambda each: (each.bytes, total(each)))
    in_steps = sum(each.hits.steps for each in for_it)
    share = f" ({count} of {of} calls)" if of > count else ""
    if not in_steps and count == 1 and case.finding.heat is Heat.COLD:
        return Verdict(Ruling.NO_COST, f"{why(count, most)}, outside of the recorded steps")
    return Verdict(Ruling.CONFIRMED, f"{why(count, most)}{share}", per_step=in_steps / case.steps)


def _nearest(case: Case, *names: str) -> list[Observation]:
    """The facts of the call that a finding is about, else those of calls inside it, else of those around it."""
    span = case.finding.span
    found = [(at, each) for at, each in case.observed if each.fact in names and at.overlaps(span)]
    same = [each for at, each in found if at == span]
    inside = [each for at, each in found if span.contains(at)]
    return same or inside or [each for _, each in found]


def _inference_mode(case: Case) -> Verdict | None:
    """TPF502: `no_grad` around forward passes whose results stay away from autograd."""
    region = _region(case.source, case.finding)
    if region is None:
        return None
    ran = case.facts("forward.no-grad", within=region)
    if not ran:
        texts = {name: _REFUTE_GRAPH[name] for name in ("forward.inference",)}
        already = case.facts(*texts, within=region)
        return refuted(texts, already) if already else None
    if used := case.facts("forward.result-recorded", within=region):
        why = f"autograd recorded `{used[0].detail}` with the result, which inference mode does not allow"
        return Verdict(Ruling.REFUTED, why)
    most = max(ran, key=total)
    what = f"`{most.detail}` ran under no_grad {_times(total(most))}"
    done, busy = (sum(map(total, case.facts(f"forward.gpu-{name}", within=region))) for name in ("done", "busy"))
    per_step = most.hits.steps / case.steps
    if busy > done:
        why = f"{what}, and the GPU was still at work when it returned: less CPU time changes nothing"
        return Verdict(Ruling.NO_COST, why, per_step=per_step)
    cost = "the GPU had finished first, so CPU time counts" if done else "what it costs was not measured"
    return Verdict(Ruling.CONFIRMED, f"{what}; {cost}", per_step=per_step)


def _region(source: Source, finding: Finding) -> Span | None:
    """The function that a finding's context decorates, or the `with` statement that enters it."""
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            contexts = [item.context_expr for item in node.items]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            contexts = node.decorator_list
        else:
            continue
        if any(source.span(context) == finding.span for context in contexts):
            return source.span(node)
    return None


_LOADS = {"load.again": "`{detail}` was read again, unchanged"}
_OTHER_FILES = {"load.first": "each load read another file, or a changed one"}


def _moved(case: Case) -> Verdict | None:
    """TPF504: a model that is moved, or a file that is loaded, in each step."""
    if loads := case.facts(*_LOADS):
        return _timed(case, confirmed(case, _LOADS, loads), loads)
    if others := case.facts(*_OTHER_FILES):
        return refuted(_OTHER_FILES, others)
    moves, stays = case.facts("module.moved"), case.facts("module.in-place")
    if sum(each.hits.steps for each in moves) > 1:
        texts = {"module.moved": "{bytes} of `{detail}` were copied"}
        return _timed(case, confirmed(case, texts, moves, of=sum(map(total, [*moves, *stays]))), moves)
    if not stays:
        return Verdict(Ruling.NO_COST, "the model was moved once") if moves else None
    texts = {"module.in-place": "`{detail}` was there already"}
    verdict = _timed(case, confirmed(case, texts, stays), stays)
    # Without a GPU, the law that was measured: for GPT-2 it costs nothing.
    is_free = verdict.share is None or verdict.share < FREE
    return Verdict(Ruling.NO_COST, verdict.why, verdict.ms, verdict.share, verdict.per_step) if is_free else verdict


def _timed(case: Case, verdict: Verdict, seen: Sequence[Observation]) -> Verdict:
    """A verdict with the time that the calls took on the CPU in each step, if there is a real clock."""
    step_ms, header = case.trace.step_ms, case.trace.header
    calls = sum(map(total, seen))
    if verdict.ruling is not Ruling.CONFIRMED or header.simulated or not header.devices or not step_ms or not calls:
        return verdict
    ms = sum(each.ms for each in seen) / calls * verdict.per_step
    why = f"{verdict.why}: {ms:.2g} ms of CPU time in a step of {step_ms:.3g} ms"
    return Verdict(verdict.ruling, why, ms, ms / step_ms, verdict.per_step)


def _times(count: int) -> str:
    return times(float(count))


JUDGES: dict[str, Judge] = {
    "TPF501": _needless_graph,
    "TPF502": _inference_mode,
    "TPF503": _training_mode,
    "TPF504": _moved,
}

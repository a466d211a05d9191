"""Findings for the changes to models that experiments showed to be faster, with their fixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflint.findings import Confidence, Finding, Fix, Heat, Ruling, Span, Verdict
from perflint.frozen import dataclass
from perflint.source.quoting import quoted
from perflint.source.text import Source
from perflint.tracer.changes import autocast, compiling, layout, tf32
from perflint.tracer.changes.base import Change, Refused, Won
from perflint.tracer.events import Experiment, Failure
from perflint.tracer.experiments.launches import CompileWithGraphs, CudaGraph
from perflint.tracer.experiments.models import AutocastChannelsLast, FusedNorms, Reparameterisation
from perflint.tracer.experiments.regions import GraphedCallables
from perflint.tracer.experiments.run import PART
from perflint.tracer.trace import Trace

CHANGES = (compiling.CHANGE, tf32.CHANGE, layout.CHANGE, autocast.CHANGE)
GAIN = 1.02
"""The least ratio, at the low end of its spread, from which a change is proposed."""
SHARE = 0.01
"""The least part of a step that a change must save."""
_UNWRITTEN = {
    CudaGraph.name: "a capture needs inputs at fixed addresses and a warm-up, which depend on the loop around it",
    GraphedCallables.name: "it fails for any other shape; compiling with CUDA graphs falls back",
    FusedNorms.name: "the weights of a model that is trained again would be lost",
    Reparameterisation.name: "the model has a method for it, to be called after its weights are loaded",
    AutocastChannelsLast.name: "its two changes are proposed one by one",
}
"""The reasons why no fix writes the changes of some experiments."""


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A change that won and is not written."""

    place: str
    change: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.change} was not written: {self.reason}"


def proposed(
    source: Source,
    trace: Trace,
    made: Sequence[tuple[Span, Experiment]],
    called: Sequence[tuple[Span, Experiment]],
) -> Iterator[Finding | Unwritten]:
    """A finding for each change that can be written in a file, else the reason why not.

    `made` and `called` are the experiments with models that the file makes and calls.
    """
    done: set[Change] = set()
    graphs = ((span, each) for span, each in made if each.name == CompileWithGraphs.name)
    beside = tuple(dict.fromkeys((span, _call(each, called)) for span, each in graphs))
    for tried, at_call in ((made, False), (called, True)):
        for span in dict.fromkeys(span for span, _ in tried):
            won = [each for at, each in tried if at == span and each.scope == "model" and _is_faster(each, trace)]
            for change in CHANGES:
                fitting = [each for each in won if each.name in change.experiments]
                if not fitting or change.at_call != at_call or change in done:
                    continue
                if change.for_process:
                    done.add(change)
                yield from _best(
                    change, [Won(source, span, each, trace, _call(each, called), beside) for each in fitting]
                )
            for each in won:
                if each.name in _UNWRITTEN and not at_call:
                    yield Unwritten(_place(source, span), _gain(each), _UNWRITTEN[each.name])


def untried(trace: Trace) -> Iterator[str]:
    """The reasons why experiments could not be done."""
    for failure in trace.of(Failure):
        if failure.part == PART:
            yield failure.message


def without_place(trace: Trace) -> Iterator[Unwritten]:
    """The changes that won for models whose construction or call is not in the trace."""
    for change in CHANGES:
        for each in trace.of(Experiment):
            place = each.called if change.at_call else each.place
            if place is None and each.name in change.experiments and _is_faster(each, trace):
                done = "called" if change.at_call else "made"
                yield Unwritten(each.subject, _gain(each), f"the trace did not see where the model was {done}")


def _call(experiment: Experiment, called: Sequence[tuple[Span, Experiment]]) -> Span | None:
    """The recorded call of the model of an experiment, if it is in the file."""
    return next((span for span, each in called if each is experiment), None)


def _best(change: Change, tried: Sequence[Won]) -> Iterator[Finding | Unwritten]:
    """The finding for the fastest experiment that holds for the program, after the reasons against faster ones."""
    for won in sorted(tried, key=lambda each: -each.experiment.ratio):
        place, gain = _place(won.source, won.span), _gain(won.experiment)
        try:
            reason = change.hinders(won)
            fix = None if reason else change.write(won)
        except Refused as refused:
            yield Unwritten(place, gain, str(refused))
            return
        if not reason:
            if fix is not None:
                yield _finding(change, won, fix)
            return
        yield Unwritten(place, gain, reason)


def _is_faster(experiment: Experiment, trace: Trace) -> bool:
    step = trace.step_ms
    return experiment.low >= GAIN and (not step or experiment.saved_ms >= SHARE * step)


def _finding(change: Change, won: Won, fix: Fix) -> Finding:
    experiment, step = won.experiment, won.trace.step_ms
    verdict = Verdict(
        Ruling.CONFIRMED,
        _why(experiment, step),
        experiment.saved_ms,
        experiment.saved_ms / step if step else None,
        experiment.calls_per_step,
        experiment.ratio,
    )
    code = quoted(won.source.segment(won.span))
    return Finding(
        path=won.source.path,
        span=won.span,
        code=change.rule.code,
        name=change.rule.name,
        message=f"the model of {code} is {experiment.ratio:.2f} × as fast with {experiment.change}",
        severity=change.rule.severity,
        confidence=Confidence.HIGH,
        heat=Heat.HOT,
        effect=change.rule.effect,
        help=change.help,
        fix=fix,
        verdict=verdict,
    )


def _why(experiment: Experiment, step: float | None) -> str:
    shapes = ", ".join(" × ".join(map(str, shape)) for shape in experiment.shapes[:2])
    why = f"{_gain(experiment)}, timed for {shapes} in {experiment.dtype}"
    if step:
        why += f"; {experiment.saved_ms:.3g} ms of {step:.3g} ms a step ({experiment.saved_ms / step:.0%})"
    return why


def _gain(experiment: Experiment) -> str:
    spread = f"{experiment.low:.2f}-{experiment.high:.2f}"
    return f"{experiment.change}, {experiment.ratio:.2f} × ({spread}) as fast"


def _place(source: Source, span: Span) -> str:
    return f"{source.path}:{span.line}"

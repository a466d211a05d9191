"""A finding with the evidence of a trace about its place, and judges for the usual kinds of evidence."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from perflint.findings import Finding, Ruling, Span, Verdict
from perflint.source.text import Source
from perflint.tracer.events import CandidateLine, ModuleCall, Observation, Sync
from perflint.tracer.trace import Trace


@dataclass(frozen=True, slots=True)
class Case:
    """A finding, and the evidence of one trace about its file."""

    finding: Finding
    source: Source
    trace: Trace
    observed: Sequence[tuple[Span, Observation]]
    """The observations in the file, where their code is now."""
    modules: Sequence[tuple[Span, ModuleCall]]
    """The calls of the modules that the file constructs, with the place of the construction."""
    ran: bool | None
    """True if at least one line of the finding ran; None if that is unknown."""
    syncs: Sequence[tuple[Span, Sync]] = ()
    """The waits in the file, where their code is now."""
    lines: Sequence[CandidateLine] = ()
    """The lines of the finding that ran."""

    def facts(self, *names: str, within: Span | None = None) -> list[Observation]:
        """The observations of some facts that overlap a span, by default that of the finding."""
        span = within or self.finding.span
        return [seen for at, seen in self.observed if seen.fact in names and at.overlaps(span)]

    def at_call(self, *names: str) -> list[Observation]:
        """The observations of some facts at the very call of the finding, else those that overlap it."""
        exact = [seen for at, seen in self.observed if seen.fact in names and at == self.finding.span]
        return exact or self.facts(*names)

    def of_process(self, *names: str) -> list[Observation]:
        """The observations of some facts about the whole process."""
        return [seen for seen in self.trace.of(Observation) if seen.place is None and seen.fact in names]

    def layers(self, within: Span | None = None) -> list[ModuleCall]:
        """The calls of the modules that are constructed in a span, by default that of the finding."""
        span = within or self.finding.span
        return [call for at, call in self.modules if at.overlaps(span)]

    def waits(self, within: Span | None = None) -> list[Sync]:
        """The waits that overlap a span, by default that of the finding."""
        span = within or self.finding.span
        return [sync for at, sync in self.syncs if at.overlaps(span)]

    @property
    def steps(self) -> int:
        """The number of recorded steps, at least one."""
        return max(self.trace.header.steps, 1)

    @property
    def has_gpu(self) -> bool:
        """True if the program used a GPU or a simulated one. Without one, no device is evidence."""
        return self.trace.header.simulated or bool(self.trace.header.devices)

    def per_step(self, seen: Iterable[Observation]) -> float:
        """How often a recorded step, in which such calls were watched, had one of some outcomes."""
        sampled = max(self.trace.header.call_steps, 1)
        return sum(each.hits.steps / (sampled if each.sampled else self.steps) for each in seen)


FREE = 0.005
"""The share of a step below which a cost counts as none: less cannot be distinguished from noise."""
NO_GPU = Verdict(Ruling.UNDECIDED, "the run used no GPU; trace on one, or with `perflint trace --simulate`")
NOTHING_WAITS = Verdict(
    Ruling.UNDECIDED, "nothing waits in a run without a GPU; trace on one, or with `perflint trace --simulate`"
)
Judge = Callable[[Case], Verdict | None]
"""Gives the verdict on a finding, or None if the trace holds no evidence for or against it."""


def function_around(source: Source, inner: Span, lambdas: bool = False) -> Span:
    """The innermost function around a span, or the whole file. Lambdas count only if `lambdas` is set."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, *((ast.Lambda,) if lambdas else ()))
    functions = (source.span(node) for node in ast.walk(source.tree) if isinstance(node, kinds))
    around = [span for span in functions if span.contains(inner)]
    whole = Span(1, 1, len(source.lines) + 1, 1)
    return max(around, key=lambda span: (span.line, span.column), default=whole)


def by_facts(confirms: Mapping[str, str], refutes: Mapping[str, str]) -> Judge:
    """A judge for facts at the place of the finding: the text of each says what happened.

    `{bytes}` and `{detail}` in a text stand for those of the largest observation. If both kinds were seen, the
    finding is confirmed, with the share of the calls that confirm it.
    """

    def judge(case: Case) -> Verdict | None:
        for_it, against = case.facts(*confirms), case.facts(*refutes)
        if not for_it:
            return refuted(refutes, against) if against else None
        return confirmed(case, confirms, for_it, of=sum(map(total, [*for_it, *against])))

    return judge


def confirmed(case: Case, texts: Mapping[str, str], seen: Sequence[Observation], of: int = 0) -> Verdict:
    """It happened: in recorded steps, or else at no cost for them. `of` is the number of all calls at the place."""
    per_step = case.per_step(seen)
    what = _text(texts, seen)
    if not per_step:
        return Verdict(Ruling.NO_COST, f"{what}, but in no recorded step")
    count = sum(map(total, seen))
    share = f" ({count} of {of} calls)" if of > count else ""
    return Verdict(Ruling.CONFIRMED, f"{what}, {times(per_step)} a step{share}", per_step=per_step)


def timed(case: Case, seen: Sequence[Observation], what: str) -> Verdict:
    """It happened, and took time on the CPU: at no cost if that is too short to be measured in a step."""
    per_step = case.per_step(seen)
    if not per_step:
        return Verdict(Ruling.NO_COST, f"{what}, but in no recorded step")
    ms = sum(each.ms for each in seen) / sum(map(total, seen)) * per_step
    why = f"{what}, {times(per_step)} a step, in {ms:.3g} ms of the CPU"
    step_ms = case.trace.step_ms
    # A simulated step takes the time of a CPU.
    if not step_ms or case.trace.header.simulated or not case.trace.header.devices:
        return Verdict(Ruling.CONFIRMED, why, ms, per_step=per_step)
    share = ms / step_ms
    why += f"; a step takes {step_ms:.3g} ms"
    return Verdict(Ruling.NO_COST if share < FREE else Ruling.CONFIRMED, why, ms, share, per_step)


def on_gpu(judge: Judge) -> Judge:
    """A judge of claims about a GPU, on which a run without one decides nothing."""
    return lambda case: judge(case) if case.has_gpu or case.ran is False else NO_GPU


def refuted(texts: Mapping[str, str], seen: Sequence[Observation]) -> Verdict:
    """The code ran, and something else happened."""
    return Verdict(Ruling.REFUTED, _text(texts, seen))


def total(seen: Observation) -> int:
    """The number of hits, in recorded steps and outside."""
    return seen.hits.steps + seen.hits.outside


def _text(texts: Mapping[str, str], seen: Iterable[Observation]) -> str:
    most = max(seen, key=lambda each: (each.hits.steps, each.bytes))
    return texts[most.fact].format(bytes=in_words(most.bytes), detail=most.detail)


def in_words(size: int) -> str:
    """A number of bytes in words: `3.2 MB`."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} bytes"


def times(per_step: float) -> str:
    """How often a step does something: `once`, `3 times`, `0.25 times`."""
    if abs(per_step - round(per_step)) < 0.005:
        return "once" if round(per_step) == 1 else f"{round(per_step)} times"
    return f"{per_step:.2g} times"

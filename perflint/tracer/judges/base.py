"""A finding with the evidence of a trace about its place, and judges for the usual kinds of evidence."""

from __future__ import annotations

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
    """Whether any line of the finding ran; None if that is unknown."""
    syncs: Sequence[tuple[Span, Sync]] = ()
    """The waits in the file, where their code is now."""
    lines: Sequence[CandidateLine] = ()
    """The lines of the finding that ran."""

    def facts(self, *names: str, within: Span | None = None) -> list[Observation]:
        """The observations of some facts that overlap a span, by default that of the finding."""
        span = within or self.finding.span
        return [seen for at, seen in self.observed if seen.fact in names and at.overlaps(span)]

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


Judge = Callable[[Case], Verdict | None]
"""Gives the verdict on a finding, or None if the trace holds no evidence for or against it."""


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

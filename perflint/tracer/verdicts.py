"""Holds findings against traces: the claim of a rule, and the facts of a run.

A claim that the CPU waits (`Effect.SYNC`) is refuted if the code ran and nothing waited. Other claims are judged by
the observations of witnesses (`judges`), by experiments and by the records of torch.compile.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from perflint.findings import Effect, Finding, Heat, Ruling, Span, Verdict
from perflint.source.text import Source
from perflint.tracer.changes.bench import Unwritten, proposed, untried, without_place
from perflint.tracer.elsewhere import COSTS_ELSEWHERE
from perflint.tracer.events import (
    CandidateLine,
    Experiment,
    Failure,
    GraphBreak,
    Header,
    Hits,
    ModuleCall,
    Observation,
    PageableCopy,
    Place,
    Recompile,
    Sync,
)
from perflint.tracer.judges.base import FREE, NOTHING_WAITS, Case, times
from perflint.tracer.judges.bench import judge_of, waits_elsewhere, why_undecided
from perflint.tracer.moved import MovedLines
from perflint.tracer.parts import iterations, may_be_skipped
from perflint.tracer.profiles import ONE_OF, PART, READ
from perflint.tracer.trace import BLIND, Trace
from perflint.tracer.unseen.base import Facts
from perflint.tracer.unseen.bench import unseen

EXPERIMENT_CODES = frozenset({"TPF301", "TPF302", "TPF351", "TPF352", "TPF601"})
"""The rules whose findings experiments give a verdict on."""
_WAITING = frozenset({Effect.SYNC, Effect.TRANSFER, Effect.ALLOCATION, Effect.CAPTURE})
"""The effects of findings that a wait or a pageable copy at their place confirms."""
_WORD = re.compile(r"[^\W\d]\w*")


class Evidence:
    """The facts of some traces, by file."""

    def __init__(self, traces: Iterable[Trace], changes: bool = False) -> None:
        """With `changes`, the changes of experiments become findings with fixes, where the code can be written."""
        self._traces = [_Traced(trace) for trace in traces]
        self._changes = changes
        self.unwritten: list[str] = []
        """The changes of experiments that are not written in the files judged so far, each with its reason."""
        self.stale: list[str] = []
        """The files judged so far that had changed since they were traced when they were judged first."""
        self.is_of_these = False
        """True if any of the files judged so far is one that was traced."""
        self.has_no_gpu = all(traced.trace.has_no_gpu for traced in self._traces)
        """True if no trace is of a run on a GPU or of a simulated one."""
        self.is_blind = not any(traced.trace.header.watched for traced in self._traces)
        """True if no trace has more than the lines that ran."""
        self.limits = list(dict.fromkeys(each.message for traced in self._traces for each in traced.limits))
        """The limits of the profiles among the traces."""
        self._judged: set[str] = set()

    def judge(self, source: Source, findings: Sequence[Finding]) -> list[Finding]:
        """The findings of a file with their verdicts, and those of syncs that no rule has found."""
        path = os.path.realpath(source.path)
        found = (traced.view(path, source) for traced in self._traces)
        views: list[_View | _Absent] = [view for view in found if view is not None]
        self.is_of_these = self.is_of_these or bool(views)
        is_first = path not in self._judged
        if is_first and any(view.is_stale for view in views):
            self.stale.append(source.path)
        self._judged.add(path)
        if not views and all(traced.has_lines for traced in self._traces):
            views.append(_NOT_THERE)
        judged = [_judged(finding, views) for finding in findings]
        unseen = [found for view in views for found in view.unseen(source, findings)]
        if self._changes:
            proposals = [each for view in views for each in view.changes(source)]
            unseen += [each for each in proposals if isinstance(each, Finding)]
            if is_first:
                self.unwritten += [str(each) for each in proposals if not isinstance(each, Finding)]
        return [*judged, *{(found.span, found.code): found for found in unseen}.values()]

    def confirmed(self, source: Source, findings: Sequence[Finding]) -> list[Finding]:
        """The findings of a file, with their verdicts if a trace confirms them, else without.

        Of the findings that only a trace has, those with a fix stay. So an edit that takes a verdict away makes no new
        finding.
        """
        judged = self.judge(source, findings)
        known = [
            finding
            if finding.verdict is not None and finding.verdict.ruling is Ruling.CONFIRMED
            else replace(finding, verdict=None)
            for finding in judged[: len(findings)]
        ]
        return [*known, *(finding for finding in judged[len(findings) :] if finding.fix is not None)]

    def untried(self) -> list[str]:
        """The experiments that could not be done, and those whose model has no known place, each with its reason."""
        return [
            text for traced in self._traces for text in (*untried(traced.trace), *map(str, without_place(traced.trace)))
        ]


class _Traced:
    """A trace, with its records by file."""

    def __init__(self, trace: Trace) -> None:
        self.has_lines = trace.header.lines_recorded
        self.trace = trace
        self.limits = [each for each in trace.of(Failure) if each.part == PART]
        self._files = trace.files()
        self._costs = trace.costs or {}

    def view(self, path: str, source: Source) -> _View | None:
        """The facts of the trace about a file, or None if the file is not in it."""
        file = self._files.get(path)
        if file is None:
            return None
        moved = MovedLines(file, source.lines)
        return _View(self.trace, file.file, source, moved, self._costs)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Something that happened at a place."""

    span: Span
    event: Sync | PageableCopy
    ms: float | None


class _View:
    """The facts of a trace about one file."""

    def __init__(self, trace: Trace, name: str, source: Source, moved: MovedLines, costs: dict[Place, float]) -> None:
        self._trace = trace
        self._header = trace.header
        self._source = source
        self._name = name
        self._moved = moved
        self._iterations = iterations(source)
        self.is_stale = moved.is_changed
        self._step_ms = trace.step_ms
        has_costs = trace.profiled_steps > 0
        self._seen: list[_Seen] = []
        events: tuple[Sync | PageableCopy, ...] = (*trace.of(Sync), *trace.of(PageableCopy))
        for event in events:
            if (span := self._span(event.place)) is not None:
                is_timed = has_costs and isinstance(event, Sync)
                self._seen.append(_Seen(span, event, costs.get(event.place, 0.0) if is_timed else None))
        on_gpu = [each for each in trace.of(Experiment) if not each.device.startswith("cpu")]
        self._experiments = [(span, each) for each in on_gpu if (span := self._span(each.place)) is not None]
        self._called = [(span, each) for each in on_gpu if (span := self._span(each.called)) is not None]
        placed = ((each, each.place) for each in trace.of(Observation))
        self._observed = [(span, each) for each, place in placed if (span := self._span(place)) is not None]
        made_here = ((each, each.made) for each in trace.of(ModuleCall))
        self._modules = [(span, each) for each, place in made_here if (span := self._span(place)) is not None]
        at = ((each.place, each.reason) for each in trace.of(GraphBreak))
        self._breaks = [(span, reason) for place, reason in at if (span := self._span(place)) is not None]
        self._recompiles = [each.reason for each in trace.of(Recompile) if each.file == name]
        self._lines = {line.line: line for line in trace.of(CandidateLine) if line.file == name}
        self._ran_in_steps = {line.line for line in self._lines.values() if line.in_steps}

    def verdict(self, finding: Finding) -> Verdict | None:
        """The verdict of the trace on a finding, or None if it cannot decide."""
        if not self._header.watched:
            return _NOT_EXECUTED if self._has_run(finding) is False else Verdict(Ruling.UNDECIDED, BLIND)
        found = self._verdict(finding)
        if found is None or found.ruling not in (Ruling.CONFIRMED, Ruling.UNDECIDED) or " steps" in found.why:
            return found
        rare = self._rare(finding)
        return replace(found, why=f"{found.why}; the line ran {rare}") if rare else found

    def _rare(self, finding: Finding) -> str:
        """In how many steps the first line of a finding ran, if these are at most a tenth; else empty."""
        line = self._lines.get(self._moved.then(finding.span.line) or 0)
        counted = self._header.line_steps
        if line is None or finding.code in COSTS_ELSEWHERE or not 0 < 10 * line.steps <= counted:
            return ""
        return f"in {line.steps} of {counted} steps"

    def _verdict(self, finding: Finding) -> Verdict | None:
        overlapping = [each for each in self._seen if each.span.overlaps(finding.span)]
        # `x.nonzero().sum().item()` waits twice: each of two findings has its own wait.
        seen = [each for each in overlapping if each.span == finding.span] or overlapping
        if noted := self._noted(finding):
            waited = self._confirmed(seen) if seen else None
            if waited is None or waited.ruling is not Ruling.CONFIRMED:
                return Verdict(Ruling.CONFIRMED, noted)
            return replace(waited, why=f"{noted}; {waited.why}")
        if seen and finding.effect is Effect.SYNC and not waits_elsewhere(finding.code):
            return self._confirmed(seen)
        if not seen and finding.effect in _WAITING and (profiled := self._profiled(finding)) is not None:
            return profiled
        tried = [each for span, each in self._experiments if span.overlaps(finding.span)]
        if fitting := [each for each in tried if finding.code in each.codes]:
            return self._tried(fitting)
        if (judge := judge_of(finding.code)) is not None:
            syncs = [(each.span, each.event) for each in self._seen if isinstance(each.event, Sync)]
            ran = [self._lines[line] for line in sorted(self._lines_then(finding) & self._lines.keys())]
            has_run = self._has_run(finding)
            here = (span for span, _ in (*self._observed, *self._modules))
            if has_run is False and not seen and not any(span.overlaps(finding.span) for span in here):
                # The record of other code does not show anything about code that did not run.
                return _NOT_EXECUTED
            # Code that ran unwatched shows nothing by the absence of a record.
            seen_run = None if self._is_unwatched(finding) else has_run
            case = Case(finding, self._source, self._trace, self._observed, self._modules, seen_run, syncs, ran)
            if (judged := judge(case)) is not None:
                return judged
        return self._confirmed(seen) if seen and finding.effect in _WAITING else self._by_lines(finding)

    def _profiled(self, finding: Finding) -> Verdict | None:
        """The verdict on a finding by the waits of a profile at its place; None without any."""
        seen = [each for span, each in self._observed if each.fact in (READ, ONE_OF) and span.overlaps(finding.span)]
        if not seen:
            return None
        most = max(seen, key=lambda each: each.hits.steps)
        often = f"{times(most.hits.steps / max(self._header.steps, 1))} a step"
        if self._trace.has_no_gpu:
            reads = f"{most.detail}, which read" if most.fact == ONE_OF else "the profile shows that it reads"
            return Verdict(Ruling.UNDECIDED, f"{reads} a number {often}; nothing waits in a run without a GPU")
        waited = f"together these wait {often}, {most.ms / max(self._header.steps, 1):.3g} ms"
        return Verdict(Ruling.UNDECIDED, f"{most.detail}: {waited}; the profile does not show which")

    def _has_run(self, finding: Finding) -> bool | None:
        """Whether any line of a finding ran; None if that is unknown."""
        then = self._lines_then(finding)
        if then & self._lines.keys():
            return True
        return False if then and self._header.lines_recorded else None

    def _is_unwatched(self, finding: Finding) -> bool:
        """True if the lines of a finding ran, but only after the recorded steps."""
        ran = self._lines_then(finding) & self._lines.keys()
        return bool(ran) and not any(self._lines[line].watched for line in ran)

    def _lines_then(self, finding: Finding) -> set[int]:
        """The lines of a finding, by their numbers when the file was traced."""
        lines = range(finding.span.line, finding.span.end_line + 1)
        return {line for now in lines if (line := self._moved.then(now)) is not None}

    def _by_lines(self, finding: Finding) -> Verdict | None:
        """The verdict by whether the lines of a finding ran."""
        has_run, then = self._has_run(finding), self._lines_then(finding)
        if not has_run:
            return None if has_run is None else _NOT_EXECUTED
        if self._is_unwatched(finding):
            return _UNWATCHED
        in_steps = bool(then & self._ran_in_steps)
        if finding.effect is Effect.SYNC:
            span = finding.span
            ran = (line for line in range(span.line, span.end_line + 1) if self._moved.then(line) in self._lines)
            if may_be_skipped(self._source, span, ran):
                return _PERHAPS_SKIPPED
            is_evidence = self._header.simulated or bool(self._header.devices)
            return self._refuted(finding, in_steps) if is_evidence else NOTHING_WAITS
        is_here = finding.code not in COSTS_ELSEWHERE
        if finding.heat is Heat.HOT and is_here and not in_steps and self._header.steps:
            return Verdict(Ruling.NO_COST, "the code ran, but in no recorded step")
        return Verdict(Ruling.UNDECIDED, why_undecided(finding.code))

    def _span(self, place: Place | None) -> Span | None:
        """The code of a place in this file, where it is now; that of an iterator, if the place is that of its calls."""
        span = self._moved.span(place) if place is not None and place.file == self._name else None
        return self._iterations.get(span, span) if span is not None else None

    def _noted(self, finding: Finding) -> str:
        """The records of torch.compile at the place of a finding; empty if there are none."""
        if finding.effect is Effect.GRAPH_BREAK:
            reasons = [reason for span, reason in self._breaks if span.overlaps(finding.span)]
            # The same break has a short reason of the interpreter, too.
            return f"torch.compile ended a graph here: {_first_line(max(reasons, key=len))}" if reasons else ""
        if finding.effect is Effect.RECOMPILE:
            # A guard that failed names what it guards: `self.steps == 3`.
            names = set(_WORD.findall(self._source.segment(finding.span))) - {"self"}
            guards = [_first_line(reason).partition(" #")[0] for reason in self._recompiles]
            failed = next((guard for guard in guards if names & set(_WORD.findall(guard))), "")
            return f"torch.compile compiled the code again where `{failed.strip()}` did not hold" if failed else ""
        return ""

    def _confirmed(self, seen: list[_Seen]) -> Verdict:
        steps = max(self._header.steps, 1)
        counted = sum(_in_whole_steps(each.event.hits, self._header) for each in seen)
        per_step = (counted or sum(each.event.hits.steps for each in seen)) / steps
        if not per_step:
            return Verdict(Ruling.NO_COST, "it happened, but in no recorded step")
        allowed = next((each.event.allowed for each in seen if each.event.allowed), "")
        known = {each.event.place: each.ms for each in seen if each.ms is not None}
        often = self._often(seen, per_step)
        if not known or self._step_ms is None:
            return Verdict(Ruling.CONFIRMED, f"{often}; {_unmeasured(self._header.simulated)}", per_step=per_step)
        ms = sum(known.values())
        share = ms / self._step_ms if self._step_ms else 0.0
        if share < FREE:
            why = f"{often}, and the step is no longer for it"
            return Verdict(Ruling.NO_COST, why, ms, share, per_step)
        why = f"{ms:.3g} ms of {self._step_ms:.3g} ms a step ({share:.0%}), {often}"
        return Verdict(Ruling.CONFIRMED, f"{why}; allowed: {allowed}" if allowed else why, ms, share, per_step)

    def _often(self, seen: list[_Seen], per_step: float) -> str:
        """The number of times in a step, or in all if it did not happen in each step."""
        syncs = [each.event for each in seen if isinstance(each.event, Sync)]
        steps = self._trace.steps_with(syncs) if len(syncs) == len(seen) else None
        if steps is None or steps >= self._header.steps:
            return f"{times(per_step)} a step"
        if not steps:
            count = times(sum(sync.hits.steps for sync in syncs))
            return f"{count} after the last of {self._header.steps} steps"
        count = times(sum(_in_whole_steps(sync.hits, self._header) for sync in syncs))
        return f"{count} in {steps} of {self._header.steps} steps"

    def _tried(self, experiments: Sequence[Experiment]) -> Verdict:
        """The results of experiments, with the program's own shapes, for the layers that one place creates."""
        most = max(experiments, key=lambda each: each.saved_ms)
        shapes = ", ".join(" × ".join(map(str, shape)) for shape in most.shapes[:2])
        more = len(experiments) - 1
        others = f" and {more} other {'layers' if more > 1 else 'layer'}" if more else ""
        spread = f"{most.low:.2f}-{most.high:.2f}"
        why = f"{most.ratio:.2f} × ({spread}) the time of {most.change}, for {shapes} in {most.dtype}{others}"
        ms = sum(each.saved_ms for each in experiments if each.low > 1)
        per_step = sum(each.calls_per_step for each in experiments)
        share = ms / self._step_ms if self._step_ms else None
        if ms <= 0:
            return Verdict(Ruling.NO_COST, why, ms, share, per_step, most.ratio)
        if share is not None and self._step_ms is not None:
            why += f"; {ms:.3g} ms of {self._step_ms:.3g} ms a step ({share:.0%})"
        return Verdict(Ruling.CONFIRMED, why, ms, share, per_step, most.ratio)

    def _refuted(self, finding: Finding, in_steps: bool) -> Verdict:
        where = "the code ran" if in_steps else "the code ran, in no recorded step,"
        device = "the CPU would not have waited" if self._header.simulated else "the CPU did not wait"
        callers = {f"{self._name}:{line}" for line in self._lines_then(finding)}
        for sync in self._trace.of(Sync):
            # Of each place that waited, a trace has the callers of the first time only.
            if any(frame.partition(" ")[0] in callers for frame in sync.stack[1:]):
                return Verdict(
                    Ruling.REFUTED, f"{where} and {device} here, but at {sync.stack[0]}, which the line calls"
                )
        return Verdict(Ruling.REFUTED, f"{where} and {device} here")

    def unseen(self, source: Source, findings: Sequence[Finding]) -> Iterator[Finding]:
        """Findings for events of recorded steps that no rule has found."""
        waits = [
            (each.span, each.event, self._confirmed([each])) for each in self._seen if isinstance(each.event, Sync)
        ]
        return unseen(Facts(source, self._trace, self._observed, waits, findings))

    def changes(self, source: Source) -> Iterator[Finding | Unwritten]:
        """The changes of experiments that won, as findings with fixes, or the reasons against writing them."""
        return proposed(source, self._trace, self._experiments, self._called)


class _Absent:
    """A trace without a file: none of its lines ran."""

    is_stale = False

    def verdict(self, finding: Finding) -> Verdict | None:
        return _NOT_EXECUTED

    def unseen(self, source: Source, findings: Sequence[Finding]) -> Iterator[Finding]:
        return iter(())

    def changes(self, source: Source) -> Iterator[Finding | Unwritten]:
        return iter(())


_PERHAPS_SKIPPED = Verdict(Ruling.UNDECIDED, "its line ran, and a condition in the line may have skipped this part")
_UNWATCHED = Verdict(
    Ruling.UNDECIDED,
    "it ran only after the recorded steps, and waits are seen up to their end; `--steps 0` records all",
)
_NOT_EXECUTED = Verdict(Ruling.NOT_EXECUTED, "the traced program did not come here")
_NOT_THERE = _Absent()

_ORDER = (Ruling.CONFIRMED, Ruling.NO_COST, Ruling.REFUTED)


def _judged(finding: Finding, views: Sequence[_View | _Absent]) -> Finding:
    """A finding with the verdict of the trace that has most to say."""
    verdicts = [view.verdict(finding) for view in views]
    known = [verdict for verdict in verdicts if verdict is not None]
    for ruling in _ORDER:
        same = [verdict for verdict in known if verdict.ruling is ruling]
        if same:
            most = max(same, key=lambda verdict: (verdict.share or 0.0, verdict.per_step))
            return replace(finding, verdict=most)
    return replace(finding, verdict=known[0]) if known and len(known) == len(verdicts) else finding


def _in_whole_steps(hits: Hits, header: Header) -> int:
    """The hits in recorded steps, without those after the last one if they are known."""
    is_known = hits.windows and header.steps_per_window == 1
    return sum(hits.windows[: header.steps]) if is_known else hits.steps


def _first_line(reason: str) -> str:
    return reason.partition("\n")[0].strip()


def _unmeasured(simulated: bool) -> str:
    return "simulated, so without times" if simulated else "what it costs was not measured"


def by_cost(finding: Finding) -> tuple[object, ...]:
    """A sort key: what costs most first, then confirmed, unknown, not executed, free and refuted findings."""
    verdict = finding.verdict
    order = [Ruling.CONFIRMED, Ruling.UNDECIDED, Ruling.NOT_EXECUTED, Ruling.NO_COST, Ruling.REFUTED]
    ruling = verdict.ruling if verdict is not None else Ruling.UNDECIDED
    ms = verdict.ms if verdict is not None and verdict.ms is not None else -1.0
    return order.index(ruling), -ms, finding.path, finding.span, finding.code

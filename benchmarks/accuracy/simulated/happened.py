"""The places of a recording where something happened that confirms a rule, whether or not a finding is there.

A place counts for a rule if the rule's judge would confirm a finding at it, and would not without what the witnesses
observed at this place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import recording

from perflint.findings import Confidence, Effect, Finding, Heat, Ruling, Severity, Span
from perflint.rules.registry import all_rules
from perflint.source.text import Source
from perflint.tracer.events import CandidateLine, ModuleCall, Observation, Place, Sync
from perflint.tracer.judges.base import Case
from perflint.tracer.judges.bench import judge_of
from perflint.tracer.trace import Trace

Happened = dict[str, set[Place]]


def happened(document: dict[str, Any], root: Path) -> Happened:
    """By rule, the places where something happened that confirms it, in any of the recorded runs."""
    found: Happened = defaultdict(set)
    sources: dict[str, Source] = {}
    for trace in recording.traces(document, root):
        seen = [each for each in trace.of(Observation) if each.place is not None and each.hits.steps]
        for place in dict.fromkeys(each.place for each in seen if each.place is not None):
            if place.file not in sources:
                sources[place.file] = Source(place.file, (root / place.file).read_text(encoding="utf-8"))
            for code in confirmed_at(place, trace, sources[place.file]):
                found[code].add(place)
    return found


def confirmed_at(place: Place, trace: Trace, source: Source) -> Iterator[str]:
    """The rules that a trace confirms by the observations at a place."""
    span = span_of(place)
    observed = [(span_of(each.place), each) for each in trace.of(Observation) if _is_in(each.place, place.file)]
    others = [(at, each) for at, each in observed if not at.overlaps(span)]
    for code in CODES:
        if _confirms(code, span, trace, source, observed) and not _confirms(code, span, trace, source, others):
            yield code


CODES = tuple(sorted(rule.code for rule in all_rules() if judge_of(rule.code) is not None))


def _confirms(
    code: str, span: Span, trace: Trace, source: Source, observed: Sequence[tuple[Span, Observation]]
) -> bool:
    judge = judge_of(code)
    assert judge is not None
    finding = Finding(source.path, span, code, "", "", Severity.WARNING, Confidence.HIGH, Heat.HOT, Effect.COMPUTE)
    lines = [line for line in trace.of(CandidateLine) if line.file == source.path and _covers(span, line.line)]
    case = Case(
        finding,
        source,
        trace,
        observed,
        modules=[(span_of(each.made), each) for each in trace.of(ModuleCall) if _is_in(each.made, source.path)],
        ran=True if lines else None,
        syncs=[(span_of(each.place), each) for each in trace.of(Sync) if _is_in(each.place, source.path)],
        lines=lines,
    )
    verdict = judge(case)
    return verdict is not None and verdict.ruling is Ruling.CONFIRMED


def _covers(span: Span, line: int) -> bool:
    return span.line <= line <= span.end_line


def span_of(place: Place | None) -> Span:
    """The code of a place."""
    assert place is not None
    return Span(place.line, place.column, place.end_line, place.end_column)


def _is_in(place: Place | None, file: str) -> bool:
    return place is not None and place.file == file

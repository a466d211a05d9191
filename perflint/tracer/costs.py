"""The measured costs of the lines of a file, where they are now."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from perflint.source.text import Source
from perflint.tracer.moved import MovedLines
from perflint.tracer.trace import Trace


@dataclass(frozen=True, slots=True)
class Measured:
    """The time that each step of a run lost at the lines of a file."""

    lines: dict[int, float]
    """Milliseconds by line."""
    step_ms: float
    conditions: str
    """The GPU and the program."""


def measured(traces: Iterable[Trace], source: Source) -> Measured | None:
    """The costs in the first trace that has costs in a file; None if there is none."""
    path = os.path.realpath(source.path)
    for trace in traces:
        costs, step_ms = trace.costs, trace.step_ms
        file = trace.files().get(path)
        if not costs or not step_ms or file is None:
            continue
        moved = MovedLines(file, source.lines)
        lines: dict[int, float] = {}
        for place, ms in costs.items():
            span = moved.span(place) if place.file == file.file else None
            if span is not None and ms > 0:
                lines[span.line] = lines.get(span.line, 0.0) + ms
        if lines:
            return Measured(lines, step_ms, _conditions(trace))
    return None


def _conditions(trace: Trace) -> str:
    gpu = trace.header.devices[0] if trace.header.devices else "a simulated GPU"
    return f"{' '.join(trace.header.program) or 'a traced block'} on {gpu}"

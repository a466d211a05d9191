"""Runs of programs that never ran."""

from __future__ import annotations

from collections.abc import Sequence

from perflint.findings import Safety
from perflint.tracer.steps import StepSource
from perflint.verify.execution import Run, Seen
from perflint.verify.plan import Candidate


def run(
    losses: Sequence[float] = (),
    times: Sequence[float] = (10.0,),
    out: str = "",
    status: int | None = 0,
    told: str = "",
    stopped: bool = False,
) -> Run:
    """A run with some losses, one a step, and times in milliseconds."""
    curve = tuple(enumerate(losses))
    seen = Seen("2.13", "", int(StepSource.OPTIMIZER), "host", tuple(times), curve, stopped, ())
    return Run(status, 3.0, out, told, seen if times or losses else None)


def candidate(code: str, line: int = 1, safety: Safety = Safety.SAFE) -> Candidate:
    """A fix of a rule."""
    return Candidate("a.py", line, code, code.lower(), safety, "message")

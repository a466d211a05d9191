"""The facts of a trace about a file, and the findings that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perflint.findings import Confidence, Finding, Heat, Ruling, Span, Verdict
from perflint.rules.base import TracedRule
from perflint.source.text import Source
from perflint.tracer.events import Observation, Sync
from perflint.tracer.judges.base import in_words, total
from perflint.tracer.trace import Trace


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of one trace about one file, and the findings of the rules in that file."""

    source: Source
    trace: Trace
    observed: Sequence[tuple[Span, Observation]]
    """The observations in the file, where their code is now."""
    waits: Sequence[tuple[Span, Sync, Verdict]]
    """The waits in the file with their cost."""
    findings: Sequence[Finding]

    def of(self, name: str) -> list[tuple[Span, Observation]]:
        """The observations of a fact that happened in recorded steps."""
        return [(span, seen) for span, seen in self.observed if seen.fact == name and seen.hits.steps]

    def of_process(self, name: str) -> Observation | None:
        """The observation of a fact about the whole process; None if there is none."""
        records = self.trace.of(Observation)
        return next((seen for seen in records if seen.place is None and seen.fact == name), None)

    @property
    def steps(self) -> int:
        """The number of recorded steps, at least one."""
        return max(self.trace.header.steps, 1)

    def finding(self, rule: type[TracedRule], span: Span, message: str, help: str, verdict: Verdict) -> Finding:
        """A finding of a rule of `rules/traced`."""
        line = self.source.lines[span.line - 1].rstrip() if span.line <= len(self.source.lines) else ""
        past = span.end_column - len(line) - 1 if span.end_line == span.line else -1
        if past > 0 or (past == 0 and span.column == 1):
            # A whole line: its text.
            span = Span(span.line, len(line) - len(line.lstrip()) + 1, span.line, len(line) + 1)
        return Finding(
            path=self.source.path,
            span=span,
            code=rule.code,
            name=rule.name,
            message=message,
            severity=rule.severity,
            confidence=Confidence.HIGH,
            heat=Heat.HOT,
            effect=rule.effect,
            help=help,
            verdict=verdict,
        )


def confirmed(why: str, per_step: float, ms: float | None = None, share: float | None = None) -> Verdict:
    """It happened in recorded steps."""
    return Verdict(Ruling.CONFIRMED, why, ms, share, per_step)


def bytes_per_step(seen: Observation, steps: int) -> str:
    """The bytes of an observation in a recorded step, in words."""
    return in_words(round(seen.total_bytes * seen.hits.steps / total(seen) / steps))

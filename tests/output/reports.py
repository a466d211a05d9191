"""Findings and reports to write."""

from __future__ import annotations

from perflint.findings import (
    Confidence,
    Edit,
    Effect,
    Finding,
    Fix,
    Heat,
    Problem,
    Report,
    Safety,
    Severity,
    Silenced,
    Silencer,
    Span,
)
from perflint.source.text import Source

TEXT = """\
for batch in loader:
\ttotal += model(batch).item()
    name = 'größe', y.item()
    z = f(
        y,
    )
"""
SOURCE = Source("src/train.py", TEXT)


def finding(span: Span, code: str = "TPF101", **changes: object) -> Finding:
    """A finding with some fields of its own."""
    fields: dict[str, object] = {
        "path": "src/train.py",
        "span": span,
        "code": code,
        "name": {"TPF101": "scalar-read-in-loop"}.get(code, "other-rule"),
        "message": "`.item()` waits for the device",
        "severity": Severity.WARNING,
        "confidence": Confidence.HIGH,
        "heat": Heat.HOT,
        "effect": Effect.SYNC,
    }
    return Finding(**(fields | changes))  # type: ignore[arg-type]


def fix(safety: Safety) -> Fix:
    """A fix of some safety."""
    edits = (Edit(Span(2, 11, 2, 23), "x"), Edit(Span(1, 1, 1, 1), "total = 0\n"))
    return Fix("Accumulate on the device", safety, edits, ("import torch",))


FINDINGS = [
    finding(Span(2, 11, 2, 30), fix=fix(Safety.SAFE), help="Read it once, after the loop"),
    finding(Span(3, 21, 3, 29), "TPF102", severity=Severity.ERROR, fix=fix(Safety.UNSAFE)),
    finding(Span(4, 9, 6, 6), "TPF102", severity=Severity.INFO, fix=fix(Safety.DISPLAY)),
]


SILENCED = [
    Silenced(finding(Span(3, 5, 3, 9)), Silencer.COMMENT, "the scheduler needs it"),
    Silenced(finding(Span(4, 5, 4, 6), "TPF102"), Silencer.COMMENT),
    Silenced(finding(Span(5, 9, 5, 10), "TPF102"), Silencer.BASELINE),
]


def report() -> Report:
    """A report that has everything."""
    return Report(
        findings=list(FINDINGS),
        problems=[
            Problem("src/bad.py", "syntax error: invalid syntax", "other files were checked", 3, 7),
            Problem("gone.py", "no such file or folder"),
            Problem("src/odd.py", "rule TPF101 crashed", line=4, internal=True),
        ],
        files=12,
        lines=3400,
        silenced=list(SILENCED),
        hidden={"pedantic": 4, "audit": 30},
    )

"""The severity of a finding at its place."""

from __future__ import annotations

from perflint.findings import Confidence, Finding, Heat, Ruling, Severity
from perflint.rules.worth import severity_of


def severity_at(finding: Finding) -> Severity:
    """How severe a finding is where it is: by what a trace measured, else by the rule, heat and confidence.

    The rule's severity is the cost of the pattern in a step of a representative program. Code that rarely
    runs, or may not do it at all, costs less than that: the first is information, and only hot code of high
    confidence is an error.
    """
    verdict = finding.verdict
    if verdict is not None and verdict.share is not None and verdict.ruling in (Ruling.CONFIRMED, Ruling.NO_COST):
        return severity_of(verdict.share)
    if finding.heat is Heat.COLD or finding.confidence is Confidence.LOW:
        return Severity.INFO
    if finding.severity is Severity.ERROR and not (finding.heat is Heat.HOT and finding.confidence is Confidence.HIGH):
        return Severity.WARNING
    return finding.severity

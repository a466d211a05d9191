"""What a run found, what can be fixed and what was not shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from perflint.findings import Finding, Report, Ruling, Safety, Severity, Verdict
from perflint.output.terminal import Style

_PLURALS = {
    Severity.ERROR: ("error", "errors"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.INFO: ("info", "info"),
}


def fixable(findings: Iterable[Finding]) -> Counter[Safety]:
    """How many findings have a fix of each safety."""
    return Counter(finding.fix.safety for finding in findings if finding.fix is not None)


def verdict_text(verdict: Verdict) -> str:
    """What a trace says of a finding, in a line."""
    return f"{verdict.ruling.value}: {verdict.why}"


def summary_text(report: Report, style: Style) -> str:
    """Up to four lines."""
    lines = [_found(report, style), _verdicts(report), _fixes(report, style), _not_shown(report)]
    return "".join(f"{line}\n" for line in lines if line)


def _found(report: Report, style: Style) -> str:
    files = count(report.files, "file")
    if not report.findings:
        return f"{style('No findings', 'bold', 'green')} in {files}."
    severities = Counter(finding.severity for finding in report.findings)
    kinds = ", ".join(
        f"{severities[severity]} {_PLURALS[severity][severities[severity] > 1]}"
        for severity in Severity
        if severities[severity]
    )
    found = style(f"Found {count(len(report.findings), 'finding')}", "bold")
    return f"{found} in {files}: {kinds}."


def _verdicts(report: Report) -> str:
    """What the trace says, of what it refuted and is not shown for it, too."""
    parts = [f"{report.verdicts[ruling]} {ruling.value}" for ruling in Ruling if report.verdicts.get(ruling)]
    return f"Trace: {'; '.join(parts)}." if parts else ""


def _fixes(report: Report, style: Style) -> str:
    counts = fixable(report.findings)
    safe, unsafe = counts[Safety.SAFE], counts[Safety.UNSAFE]
    parts = []
    if safe:
        parts.append(f"{style('[*]', 'green')} {safe} fixable with `perflint fix --apply`")
    if unsafe:
        more = " more" if safe else " fixable"
        parts.append(f"{style('[~]', 'green')} {unsafe}{more} with `--unsafe-fixes`")
    return ", ".join(parts) + "." if parts else ""


def _not_shown(report: Report) -> str:
    parts = []
    if report.suppressed:
        parts.append(f"{report.suppressed} silenced by comments")
    hidden = [(profile, added) for profile, added in report.hidden.items() if added]
    # Where two profiles add the same, the milder one says it all.
    distinct = {added: profile for profile, added in reversed(hidden)}
    for added, profile in sorted(distinct.items()):
        parts.append(f"`--profile {profile}` would add {added}")
    return "; ".join(parts) + "." if parts else ""


def count(number: int, noun: str) -> str:
    """A number and its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

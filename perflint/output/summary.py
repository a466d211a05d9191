"""The summary of a run: findings, fixes, and findings that were not shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from perflint.findings import WRITABLE, Elsewhere, Finding, Report, Ruling, Safety, Severity, Silencer, Verdict
from perflint.output.terminal import Style, printable, printable_path
from perflint.source.quoting import quoted

_PLURALS = {
    Severity.ERROR: ("error", "errors"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.INFO: ("info", "info"),
}

MARKERS = {Safety.SAFE: "[*]", Safety.UNSAFE: "[~]", Safety.RISKY: "[!]"}
"""How a finding shows that a fix can be written for it."""
_WRITTEN_WITH = {
    Safety.SAFE: "perflint fix --apply",
    Safety.UNSAFE: "--unsafe-fixes",
    Safety.RISKY: "--risky-fixes",
}


_MOST_FUNCTIONS = 8
"""Functions with findings that are not shown, and have a line."""
_STEP_SOURCES = {
    "marked": "marks in the program",
    "optimizer": "optimizer.step()",
    "loader": "batches of the loader",
    "module": "calls of the model",
}


def fixable(findings: Iterable[Finding]) -> Counter[Safety]:
    """How many findings have a fix of each safety."""
    return Counter(finding.fix.safety for finding in findings if finding.fix is not None)


def fixable_with_more(findings: Iterable[Finding], safeties: Collection[Safety]) -> tuple[int, str]:
    """How many findings have a fix that `safeties` leave out, and a sentence that says which options write them."""
    counts = fixable(findings)
    more = {safety: counts[safety] for safety in WRITABLE if safety not in safeties and counts[safety]}
    parts = [f"{number} with `{_WRITTEN_WITH[safety]}`" for safety, number in more.items()]
    return sum(more.values()), ", ".join(parts).replace(" with", " more with", 1) + "." if parts else ""


def verdict_text(verdict: Verdict) -> str:
    """The verdict of a trace on a finding, in a line."""
    return f"{verdict.ruling.value}: {verdict.why}"


def summary_text(report: Report, style: Style) -> str:
    """Up to four lines, and a line for each of some functions in which less is to be gained."""
    lines = [_found(report, style), _verdicts(report), _fixes(report, style), _not_shown(report)]
    lines += _elsewhere(report.elsewhere)
    return "".join(f"{line}\n" for line in lines if line)


def _found(report: Report, style: Style) -> str:
    files = count(report.files, "file")
    if not report.findings:
        if report.problems and not report.files:
            return ""
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
    """The verdicts of the trace, including refuted findings that are not shown."""
    parts = [f"{report.verdicts[ruling]} {ruling.value}" for ruling in Ruling if report.verdicts.get(ruling)]
    return f"Trace: {'; '.join(parts)}." if parts else ""


def _fixes(report: Report, style: Style) -> str:
    counts = fixable(report.findings)
    parts: list[str] = []
    for safety, option in _WRITTEN_WITH.items():
        if counts[safety]:
            more = "" if len(parts) > 1 else " more" if parts else " fixable"
            parts.append(f"{style(MARKERS[safety], 'green')} {counts[safety]}{more} with `{option}`")
    return ", ".join(parts) + "." if parts else ""


def _not_shown(report: Report) -> str:
    parts = []
    if commented := report.silenced_by(Silencer.COMMENT):
        parts.append(f"{commented} silenced by comments")
    if known := report.silenced_by(Silencer.BASELINE):
        parts.append(f"{known} in the baseline")
    if report.unchanged:
        parts.append(f"{report.unchanged} on unchanged lines")
    hidden = [(profile, added) for profile, added in report.hidden.items() if added]
    # Where two profiles add the same, the milder one says it all.
    distinct = {added: profile for profile, added in reversed(hidden)}
    for added, profile in sorted(distinct.items()):
        parts.append(f"`--profile {profile}` would add {added}")
    return "; ".join(parts) + "." if parts else ""


def _elsewhere(found: Sequence[Elsewhere]) -> list[str]:
    """The functions whose findings the profile `pedantic` would add, those with most of them first."""
    if not found:
        return []
    ranked = sorted(found, key=lambda each: (-each.count, each.path))
    shown, rest = ranked[:_MOST_FUNCTIONS], ranked[_MOST_FUNCTIONS:]
    lines = [
        f"  {printable_path(each.path)}: {each.count} "
        + (f"in {printable(quoted(each.function))}" if each.function else "outside of functions")
        for each in shown
    ]
    if rest:
        lines.append(f"  and {sum(each.count for each in rest)} in {len(rest)} more")
    return ["Less is to be gained here, so `--profile pedantic` shows it:", *lines]


def counted_by(step_source: str) -> str:
    """The event that ends a step, in words; an unknown source is named as it is."""
    return f"counted by {_STEP_SOURCES.get(step_source, printable(step_source))}"


def of_steps(some: int, steps: int) -> str:
    """In how many of the recorded steps something happened; it may have happened after the last one."""
    return f"in {some} of {count(steps, 'step')}" if some else f"after the last of {count(steps, 'step')}"


def count(number: int, noun: str) -> str:
    """A number and its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

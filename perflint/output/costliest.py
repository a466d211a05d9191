"""The functions to begin with: those whose findings cost most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.output.terminal import Style, printable_path, wrapped

_MOST_LINES = 5
_FEWEST_FINDINGS = 4
"""Fewer can be looked through without a list."""
_WEIGHTS: tuple[dict[Severity, float], dict[Heat, float], dict[Confidence, float]] = (
    {Severity.ERROR: 25.0, Severity.WARNING: 5.0, Severity.INFO: 1.0},
    {Heat.HOT: 1.0, Heat.WARM: 0.3, Heat.COLD: 0.02},
    {Confidence.HIGH: 1.0, Confidence.MEDIUM: 0.7, Confidence.LOW: 0.2},
)
_NOUNS = {
    Effect.SYNC: ("wait", "waits"),
    Effect.TRANSFER: ("copy", "copies"),
    Effect.GRAPH_BREAK: ("graph break", "graph breaks"),
    Effect.RECOMPILE: ("recompilation", "recompilations"),
}
_OFTEN = {Heat.HOT: " per step", Heat.WARM: " per call", Heat.COLD: " rarely"}
_HOTTEST_FIRST = (Heat.HOT, Heat.WARM, Heat.COLD)


def costliest_text(findings: Sequence[Finding], style: Style, columns: int | None = None) -> str:
    """At most five lines, one for each function, what costs most first; empty for few findings."""
    counted = [finding for finding in findings if finding.effect is not Effect.CORRECTNESS]
    functions: dict[tuple[str, str | None], list[Finding]] = {}
    for finding in counted:
        functions.setdefault((finding.place, finding.function), []).append(finding)
    if len(counted) < _FEWEST_FINDINGS or len(functions) < 2:
        return ""
    order = sorted(functions.values(), key=lambda each: (-_cost(each), each[0].path, each[0].span))
    lines = [f"{style('Most costly first:', 'bold')}"]
    for each in order[:_MOST_LINES]:
        lines += _indented(wrapped(printable_path(_line(each)), columns, 2, 4))
    return "\n".join(lines) + "\n\n"


def _indented(lines: list[str]) -> list[str]:
    return [f"  {lines[0]}", *lines[1:]]


def _cost(findings: Sequence[Finding]) -> float:
    """The cost of a function's findings: measured milliseconds first, then weights of what is known."""
    return _measured_ms(findings) * 1e6 + sum(max(map(_weight, each)) for each in _by_place(findings))


def _measured_ms(findings: Iterable[Finding]) -> float:
    """The measured milliseconds of some findings; those that share a place share its time."""
    return sum(max((each.verdict.ms or 0.0) if each.verdict else 0.0 for each in at) for at in _by_place(findings))


def _by_place(findings: Iterable[Finding]) -> list[list[Finding]]:
    """The findings of a file, those whose expressions overlap together."""
    groups: list[list[Finding]] = []
    for finding in sorted(findings, key=lambda each: each.span):
        if groups and any(finding.span.overlaps(other.span) for other in groups[-1]):
            groups[-1].append(finding)
        else:
            groups.append([finding])
    return groups


def _weight(finding: Finding) -> float:
    severity, heat, confidence = _WEIGHTS
    return severity[finding.severity] * heat[finding.heat] * confidence[finding.confidence]


def _line(findings: Sequence[Finding]) -> str:
    first = findings[0]
    measured = _measured_ms(findings)
    hottest = next(heat for heat in _HOTTEST_FIRST if any(finding.heat is heat for finding in findings))
    hot = [finding for finding in findings if finding.heat is hottest]
    where = f" in `{first.function}`" if first.function else ""
    time = f", {measured:.3g} ms of each step" if measured else ""
    return f"{first.place}: {_what(hot, hottest)}{where} ({_lines(hot)}){time}"


def _what(findings: Sequence[Finding], heat: Heat) -> str:
    """The findings in words: "3 waits and 2 copies per step", "dims-not-multiple"."""
    repeating = [finding for finding in findings if finding.effect in _NOUNS]
    repeated = Counter(effect for at in _by_place(repeating) for effect in {each.effect for each in at})
    named = Counter(finding.name for finding in findings if finding.effect not in _NOUNS)
    counts = [f"{number} {_NOUNS[effect][number > 1]}" for effect, number in repeated.items()]
    names = [f"{name} × {number}" if number > 1 else name for name, number in named.items()]
    often = f"{_and(counts)}{_OFTEN[heat]}" if counts else ""
    return _and([part for part in (often, *names) if part])


def _and(parts: Sequence[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def _lines(findings: Iterable[Finding]) -> str:
    lines = sorted({finding.span.line for finding in findings})
    if len(lines) == 1:
        return f"line {lines[0]}"
    return f"lines {_and([str(line) for line in lines])}" if len(lines) <= 4 else f"lines {lines[0]} to {lines[-1]}"

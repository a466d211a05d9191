"""The settings that change findings after the profile has chosen them: severities, thresholds and fixable rules."""

from __future__ import annotations

from collections.abc import Sequence

from perflint.config.selection import Selection, choose, expand, named_in, selects, specificity
from perflint.config.settings import Settings
from perflint.engine.rulebook import names
from perflint.findings import Confidence, Finding, Safety, Severity
from perflint.frozen import replace

_SEVERITIES = (Severity.INFO, Severity.WARNING, Severity.ERROR)
_CONFIDENCES = (Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)


def require_known(settings: Settings) -> None:
    """Raise ConfigurationError for a rule in `severity`, `fixable` or `unfixable` that does not exist."""
    for selector, _ in settings.severity:
        expand(selector, names(settings), named_in("severity", settings.selections))
    for key, selectors in (("fixable", settings.fixable), ("unfixable", settings.unfixable)):
        for selector in selectors:
            expand(selector, names(settings), named_in(key, settings.selections))


def settled(findings: Sequence[Finding], settings: Settings) -> list[Finding]:
    """The findings that pass the thresholds, with the severity and the fix that the settings give them."""
    kept = [_remapped(finding, settings) for finding in findings if _is_sure(finding, settings)]
    kept = [finding for finding in kept if _weighs(finding, settings)]
    if settings.fixable == ("ALL",) and not settings.unfixable:
        return kept
    chosen = choose([Selection(settings.fixable, settings.unfixable)], names(settings))
    return [finding if finding.code in chosen else _with_advice(finding) for finding in kept]


def _is_sure(finding: Finding, settings: Settings) -> bool:
    return _CONFIDENCES.index(finding.confidence) >= _CONFIDENCES.index(settings.min_confidence)


def _weighs(finding: Finding, settings: Settings) -> bool:
    return _SEVERITIES.index(finding.severity) >= _SEVERITIES.index(settings.min_severity)


def _remapped(finding: Finding, settings: Settings) -> Finding:
    """The finding with the severity of the most specific entry for its rule; of equal ones, the last counts."""
    fitting = [each for each in settings.severity if selects(each[0], finding.code, finding.name)]
    if not fitting:
        return finding
    _, severity = max(reversed(fitting), key=lambda each: specificity(each[0]))
    return replace(finding, severity=severity)


def _with_advice(finding: Finding) -> Finding:
    """The finding with its fix as advice only."""
    return finding if finding.fix is None else replace(finding, fix=replace(finding.fix, safety=Safety.DISPLAY))

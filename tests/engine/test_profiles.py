"""What the profiles show."""

from __future__ import annotations

import pytest

from perflint.config.settings import Profile
from perflint.engine.profiles import claims, shows
from perflint.findings import Confidence, Heat, Severity, Span
from perflint.frozen import replace
from tests.output.reports import finding

PLAIN = replace(
    finding(Span(1, 1, 1, 2), confidence=Confidence.HIGH), severity=Severity.WARNING, heat=Heat.HOT, verdict=None
)


@pytest.mark.parametrize(
    ("found", "shown_by"),
    [
        (PLAIN, "default pedantic audit"),
        (replace(PLAIN, heat=Heat.COLD), "pedantic audit"),
        (replace(PLAIN, severity=Severity.INFO), "pedantic audit"),
        (replace(PLAIN, confidence=Confidence.LOW), "audit"),
    ],
)
def test_a_finding_without_a_verdict(found: object, shown_by: str) -> None:
    for ask in (claims, shows):
        assert " ".join(profile.value for profile in Profile if ask(profile, found)) == shown_by  # type: ignore[arg-type]

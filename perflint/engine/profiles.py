"""What each profile shows."""

from __future__ import annotations

from perflint.config.settings import Profile
from perflint.findings import Confidence, Finding, Heat, Severity

STRICTER = {
    Profile.DEFAULT: (Profile.PEDANTIC, Profile.AUDIT),
    Profile.PEDANTIC: (Profile.AUDIT,),
    Profile.AUDIT: (),
}


def shows(profile: Profile, finding: Finding) -> bool:
    """Whether a profile shows a finding."""
    if profile is Profile.AUDIT:
        return True
    if finding.confidence is Confidence.LOW:
        return False
    return profile is Profile.PEDANTIC or (finding.heat is not Heat.COLD and finding.severity is not Severity.INFO)

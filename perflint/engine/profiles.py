"""The findings that each profile shows."""

from __future__ import annotations

from perflint.config.settings import Profile
from perflint.findings import Confidence, Finding, Heat, Ruling, Severity

STRICTER = {
    Profile.DEFAULT: (Profile.PEDANTIC, Profile.AUDIT),
    Profile.PEDANTIC: (Profile.AUDIT,),
    Profile.AUDIT: (),
}


def shows(profile: Profile, finding: Finding) -> bool:
    """True if a profile shows a finding. A trace has the last word where it has one."""
    if profile is Profile.AUDIT:
        return True
    ruling = finding.verdict.ruling if finding.verdict is not None else Ruling.UNDECIDED
    if ruling not in (Ruling.NOT_EXECUTED, Ruling.UNDECIDED):
        return ruling is Ruling.CONFIRMED or (ruling is Ruling.NO_COST and profile is Profile.PEDANTIC)
    return claims(profile, finding)


def claims(profile: Profile, finding: Finding) -> bool:
    """True if a profile shows a finding that has no verdict of a trace."""
    if profile is Profile.AUDIT:
        return True
    if finding.confidence is Confidence.LOW:
        return False
    return profile is Profile.PEDANTIC or (finding.heat is not Heat.COLD and finding.severity is not Severity.INFO)

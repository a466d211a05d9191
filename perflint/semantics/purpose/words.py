"""Words that the messages of rules share."""

from __future__ import annotations

from perflint.findings import Frequency, Heat
from perflint.semantics.purpose.frequency import frequency
from perflint.semantics.sites import FileSite, Site

_RARE = (Frequency.EPOCH, Frequency.NEVER)


def often(site: Site) -> str:
    """How often the code of a site runs, to end a message with: " (runs every step)"; empty if it is not hot."""
    if site.heat is not Heat.HOT:
        return ""
    unit = Frequency.STEP if isinstance(site, FileSite) else frequency(site.model, site.node)
    return "" if unit in _RARE else f" ({unit.words})"

"""Words that rules share."""

from __future__ import annotations

from perflint.findings import Heat
from perflint.semantics.sites import Site

EVERY_STEP = " (runs every step)"


def often(site: Site) -> str:
    """How often the code of a site runs, to end a message with: " (runs every step)"."""
    return EVERY_STEP if site.heat is Heat.HOT else ""

"""Words that rules share."""

from __future__ import annotations

from perflint.findings import Heat
from perflint.semantics.sites import Site


def often(site: Site) -> str:
    """How often the code of a site runs, to end a message with: " (runs every step)"."""
    return " (runs every step)" if site.heat is Heat.HOT else ""

"""Words that rules share: quotes of code, how often a place runs, advice with measured figures."""

from __future__ import annotations

from perflint.findings import Heat
from perflint.semantics.sites import Site

_LONGEST_QUOTE = 60


def quoted(text: str) -> str:
    """Source text between backquotes, on one line and no longer than a message bears."""
    line = " ".join(text.split())
    if len(line) > _LONGEST_QUOTE:
        line = line[: _LONGEST_QUOTE - 1].rstrip() + "…"
    return f"`{line}`"


def often(site: Site) -> str:
    """How often the code of a site runs, to end a clause with: " in code that runs each step"."""
    return " in code that runs each step" if site.heat is Heat.HOT else ""

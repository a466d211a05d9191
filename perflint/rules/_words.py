"""Words that rules share: quotes of code, how often a place runs, advice with measured figures."""

from __future__ import annotations

from perflint.findings import Heat
from perflint.rules.worth import Cost, cost
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


def advice(site: Site, cure: str, *measured: str) -> str:
    """The cure, and on hot paths the measured rows of `worth.toml` that go with it, at most two."""
    if site.heat is not Heat.HOT or not measured:
        return cure
    first, *more = (cost(name) for name in measured[:2])
    figures = [f"{first.pattern}: {first.slower}", *(f"{_other(row, first)}: {row.slower}" for row in more)]
    return f"{cure} Measured {first.where}: {'; '.join(figures)}."


def _other(row: Cost, first: Cost) -> str:
    """What a row's pattern has that the first one's has not, from the first word that differs."""
    words, known = row.pattern.split(), first.pattern.split()
    same = next((index for index, (word, other) in enumerate(zip(words, known, strict=False)) if word != other), 0)
    return " ".join(words[same:])

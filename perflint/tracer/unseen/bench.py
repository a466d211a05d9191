"""All findings that only a trace has."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Finding
from perflint.tracer.unseen import casts, collector, forwards, recomputation, waits
from perflint.tracer.unseen.base import Facts

_FINDERS = (waits.find, forwards.find, collector.find, casts.find, recomputation.find)


def unseen(facts: Facts) -> Iterator[Finding]:
    """The findings of a file that no rule has made from its source."""
    for find in _FINDERS:
        yield from find(facts)

"""Answers that several rules ask for at one site, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from perflint.semantics.sites import Site

_Asked = TypeVar("_Asked", bound=Site)
_Answer = TypeVar("_Answer")


def once_per_site(ask: Callable[[_Asked], _Answer]) -> Callable[[_Asked], _Answer]:
    """Remember the answer until another site is asked about; sites are told apart by identity, as hashing is dearer."""
    last: list[tuple[_Asked, _Answer]] = []

    @wraps(ask)
    def remembered(site: _Asked) -> _Answer:
        if not last or last[0][0] is not site:
            last[:] = [(site, ask(site))]
        return last[0][1]

    return remembered

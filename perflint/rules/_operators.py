"""The names of operators for which the answer to a question is yes, from the tables of `operators.toml`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from perflint.semantics.facts.tables import table


@cache
def _tables() -> dict[str, Any]:
    return table(Path(__file__).with_name("operators.toml"))


def operators(section: str, question: str) -> frozenset[str]:
    """The names under a question of a section."""
    return frozenset(_tables()[section][question].split())

"""The tables of rules: operators for which the answer to a question is yes, and the words of messages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from perflint.semantics.facts.tables import table


@cache
def _tables(name: str) -> dict[str, Any]:
    return table(Path(__file__).with_name(name))


def operators(section: str, question: str) -> frozenset[str]:
    """The names under a question of a section."""
    return frozenset(_tables("operators.toml")[section][question].split())


def words(rule: str, question: str) -> Mapping[str, str]:
    """The words of a rule for each answer to a question."""
    return _tables("words.toml")[rule][question]  # type: ignore[no-any-return]

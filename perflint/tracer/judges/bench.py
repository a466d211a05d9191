"""All judges together."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import perflint.tracer.judges as package
from perflint.semantics.facts.tables import table
from perflint.tracer.judges.base import Judge


class JudgeError(Exception):
    """Two modules judge the same rule."""


def judge_of(code: str) -> Judge | None:
    """The judge of a rule, or None if it has none."""
    return _tables()[0].get(code)


def why_undecided(code: str) -> str:
    """Why a trace of lines that ran gave no verdict on a finding of a rule, and how to get one."""
    return _tables()[1].get(code, "the trace holds no evidence for or against it")


def waits_elsewhere(code: str) -> bool:
    """True if the findings of a rule are at the cause of a wait that happens at another place."""
    return code in _tables()[2]


@cache
def _tables() -> tuple[Mapping[str, Judge], Mapping[str, str], Collection[str]]:
    judges: dict[str, Judge] = {}
    elsewhere: set[str] = set()
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        mine = vars(module).get("JUDGES", {})
        if twice := judges.keys() & mine.keys():
            raise JudgeError(f"{module.__name__} judges {', '.join(sorted(twice))} again")
        judges.update(mine)
        elsewhere |= vars(module).get("WAITS_ELSEWHERE", frozenset())
    return judges, table(Path(package.__file__).with_name("undecided.toml")), elsewhere

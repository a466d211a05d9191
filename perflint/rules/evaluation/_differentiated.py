"""Functions of a file through whose results another function of it trains."""

from __future__ import annotations

from functools import lru_cache

from perflint.rules.evaluation._flow import flows
from perflint.rules.evaluation._graph import Fate
from perflint.rules.evaluation._scopes import Scope, Survey
from perflint.rules.evaluation._training import trains

_ELSEWHERE = Fate.PASSED | Fate.STORED


@lru_cache(maxsize=1)
def differentiated(survey: Survey) -> set[Scope]:
    """The functions whose result reaches a backward pass in a caller, or may do so in one that trains."""
    found: set[Scope] = set()
    returned: dict[Scope, list[Scope]] = {}
    new: list[Scope] = []
    for scope, calls in survey.callers.items():
        for caller, call in calls:
            fate = flows(survey).of(caller).fate(call)
            if Fate.GRADIENT in fate or (fate & _ELSEWHERE and caller.name and trains(survey, caller)):
                new.append(scope)
            elif Fate.RETURNED in fate:
                returned.setdefault(caller, []).append(scope)
    while new:
        scope = new.pop()
        if scope not in found:
            found.add(scope)
            new += returned.get(scope, ())
    return found

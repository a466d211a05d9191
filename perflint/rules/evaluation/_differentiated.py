"""Functions of a file through whose results another function of it trains."""

from __future__ import annotations

from perflint.rules.evaluation._flow import flows
from perflint.rules.evaluation._graph import Fate
from perflint.rules.evaluation._scopes import Scope, Survey
from perflint.rules.evaluation._training import trains
from perflint.semantics.memo import once

_ELSEWHERE = Fate.PASSED | Fate.STORED


@once
def differentiated(survey: Survey) -> set[Scope]:
    """The functions whose result reaches a backward pass in a caller."""
    return _returning(survey, {scope for scope, _, fate in _results(survey) if Fate.GRADIENT in fate})


@once
def perhaps_differentiated(survey: Survey) -> set[Scope]:
    """The functions whose result goes to unknown code in a caller that trains: it may reach a backward pass there."""
    found = {
        scope
        for scope, caller, fate in _results(survey)
        if fate & _ELSEWHERE and caller.name and trains(survey, caller)
    }
    return _returning(survey, found)


@once
def _results(survey: Survey) -> list[tuple[Scope, Scope, Fate]]:
    """The functions that others of the file call, with the caller and the fate of the result there."""
    return [
        (scope, caller, flows(survey).of(caller).fate(call))
        for scope, calls in survey.callers.items()
        for caller, call in calls
    ]


def _returning(survey: Survey, found: set[Scope]) -> set[Scope]:
    """Some functions, and those whose results these return."""
    returned: dict[Scope, list[Scope]] = {}
    for scope, caller, fate in _results(survey):
        if Fate.RETURNED in fate:
            returned.setdefault(caller, []).append(scope)
    waiting = list(found)
    while waiting:
        for scope in returned.get(waiting.pop(), ()):
            if scope not in found:
                found.add(scope)
                waiting.append(scope)
    return found

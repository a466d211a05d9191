"""Which values may carry a gradient: those that come from a model that is trained, or from a parameter."""

from __future__ import annotations

import ast
from enum import Flag, auto
from typing import Any

from perflint.rules._memory.operators import records
from perflint.rules.evaluation._callees import asks_for_gradient, is_host
from perflint.rules.evaluation._flow import flows
from perflint.rules.evaluation._followed import followed, passed
from perflint.rules.evaluation._modules import modules
from perflint.rules.evaluation._runs import is_named_as_model
from perflint.rules.evaluation._scopes import OfFile, Scope, Survey
from perflint.semantics.memo import once, once_per_key, remembered
from perflint.semantics.structure import last_name, path_of, walk
from perflint.semantics.values import Evidence, Instance, Kind, Value

_CUTS = frozenset({"device", "dtype", "shape"})
_READS = frozenset({"item", "numpy", "tolist", "size", "dim", "numel"})
_DEEPEST = 8
"""So many callers are asked one after the other."""


class Carry(Flag):
    """The origin of the gradient of a value."""

    NONE = 0
    TRAINED = auto()
    """From a model that the file runs, or a parameter that it makes."""
    UNSEEN = auto()
    """Perhaps from code that is not seen: a caller, a function of another file, an attribute."""


class Carriers(OfFile):
    """The values of a file that may carry a gradient."""

    def __init__(self, survey: Survey) -> None:
        super().__init__(survey)
        self._flows, self._modules = flows(survey), modules(survey)
        self._open: set[Scope] = set()

    def of(self, node: ast.expr) -> Carry:
        """The origin of the gradient of an expression."""
        return self.inside(self._survey.scope_around(node)).get(node, Carry.NONE)

    @remembered
    def inside(self, scope: Scope) -> dict[Any, Carry]:
        """The origins of the gradients of the values of a function."""
        self._open.add(scope)
        found = self._follow(scope)
        self._open.discard(scope)
        return found

    def _follow(self, scope: Scope) -> dict[Any, Carry]:
        flow = self._flows.of(scope)
        found: dict[Any, Carry] = {}
        waiting: list[tuple[Any, Carry]] = self._sources(scope)
        while waiting:
            place, brought = waiting.pop()
            known = found.get(place, Carry.NONE)
            if known | brought == known or self._has_no_gradient(place):
                continue
            found[place] = known | brought
            waiting += [(other, brought) for other in flow.edges.get(place, ())]
        return found

    def _has_no_gradient(self, place: object) -> bool:
        """True if a place holds no tensor, or one of integers."""
        if not isinstance(place, ast.expr):
            return False
        if isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute) and place.func.attr in _READS:
            return True
        value = self._model.value(place)
        return all(is_host(member) or _is_of_integers(member) for member in value.members)

    def _sources(self, scope: Scope) -> list[tuple[Any, Carry]]:
        """The places at which gradients come into a function."""
        flow = self._flows.of(scope)
        found: list[tuple[Any, Carry]] = []
        if not isinstance(scope.node, ast.Module):
            given = self._given(scope)
            parameters = list(flow.parameters.items())
            for arg, bound in parameters[1:] if scope.owner is not None else parameters:
                found.append((bound, given.get(arg, Carry.NONE) if given is not None else Carry.UNSEEN))
        for node in scope.nodes:
            if isinstance(node, ast.Call):
                found.append((node, self._made_by(scope, node)))
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.append((node, self._attribute(node)))
            elif isinstance(node, ast.Name) and self._survey.is_from_outside(scope, node):
                if not self._survey.is_code(node):
                    found.append((node, Carry.UNSEEN))
        return [(place, carry) for place, carry in found if carry is not Carry.NONE]

    def _given(self, scope: Scope) -> dict[ast.arg, Carry] | None:
        """The arguments of the callers in the file; None if there are none, or if they are too deep."""
        calls = self._survey.callers.get(scope, [])
        if not calls or len(self._open) > _DEEPEST or any(caller in self._open for caller, _ in calls):
            return None
        found: dict[ast.arg, Carry] = {}
        for caller, call in calls:
            carried = self.inside(caller)
            for argument, parameter in passed(call, scope):
                if parameter is not None:
                    found[parameter] = found.get(parameter, Carry.NONE) | carried.get(argument, Carry.NONE)
                elif carried.get(argument):
                    return None
        return found

    def _made_by(self, scope: Scope, call: ast.Call) -> Carry:
        """The origin of a gradient that does not come from the arguments of a call, but begins at it."""
        if not records(self._model, call):
            return Carry.NONE
        if last_name(call) in ("Parameter", "requires_grad_") or asks_for_gradient(call):
            return Carry.TRAINED
        if self.runs_model(call):
            return Carry.NONE if self._is_untrained(call) else Carry.TRAINED
        if call in self._flows.of(scope).unseen:
            return self._by_unseen(call)
        function = followed(self._survey, call)
        if function is None:
            return Carry.NONE
        return Carry.TRAINED if self._runs_recorded(function) else Carry.NONE

    def _by_unseen(self, call: ast.Call) -> Carry:
        """The result of unseen code; it may be a method of the file with that name."""
        named = self._survey.called(call) if self._may_be_of_file(call.func) else []
        return Carry.TRAINED if any(map(self._runs_recorded, named)) else Carry.UNSEEN

    def _may_be_of_file(self, callee: ast.expr) -> bool:
        return not isinstance(callee, ast.Attribute) or isinstance(self._model.value(callee.value), Instance)

    @once_per_key
    def _runs_recorded(self, scope: Scope) -> bool:
        """True if a function runs a model while autograd records."""
        return any(self.runs_model(call) for call in scope.calls if records(self._model, call))

    def _is_untrained(self, call: ast.Call) -> bool:
        owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        holders = [self._modules.holder(call, path_of(each)) for each in (call.func, owner) if path_of(each)]
        return any(
            self._modules.follows(each) or self._modules.stays(each) or self._modules.has_no_gradient(each)
            for each in holders
        )

    def runs_model(self, call: ast.Call) -> bool:
        """True if a call runs a module, or a method of one."""
        if self._modules.shows(call.func) or is_named_as_model(self._survey, call.func):
            return True
        return isinstance(call.func, ast.Attribute) and self._modules.shows(call.func.value)

    def _attribute(self, attribute: ast.Attribute) -> Carry:
        """The value of an attribute of the object: a parameter, or unknown."""
        root = path_of(attribute).partition(".")[0]
        if root not in ("self", "cls") or attribute.attr in _CUTS:
            return Carry.NONE
        around = self._model.parent(attribute)
        if isinstance(around, ast.Call) and around.func is attribute:
            return Carry.NONE
        return Carry.TRAINED if self._is_parameter(path_of(attribute)) else Carry.UNSEEN

    @once_per_key
    def _is_parameter(self, path: str) -> bool:
        """True if the file makes an attribute a parameter somewhere."""
        made = (inner for value in self._survey.assigned(path) for inner in walk(value))
        return any(isinstance(inner, ast.Call) and last_name(inner) == "Parameter" for inner in made)


def _is_of_integers(value: Value) -> bool:
    """True if a value is a tensor of integers or booleans, beyond doubt."""
    tensor = value.tensor
    return tensor is not None and tensor.kind in (Kind.INT, Kind.BOOL) and tensor.evidence is Evidence.CERTAIN


@once
def carriers(survey: Survey) -> Carriers:
    """The values of a file that may carry a gradient."""
    return Carriers(survey)

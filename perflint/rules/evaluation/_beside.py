"""Training through a run of a model by other ways than its result: a model may keep a loss in an attribute."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.rules._methods import is_self_or_cls
from perflint.rules.evaluation._callees import NO_RESULTS, arguments
from perflint.rules.evaluation._carried import Carry, carriers
from perflint.rules.evaluation._flow import flows
from perflint.rules.evaluation._graph import Fate
from perflint.rules.evaluation._modules import Holder, modules
from perflint.rules.evaluation._scopes import Scope, Survey, dotted
from perflint.semantics.facts.rule_conventions import words
from perflint.semantics.memo import once
from perflint.semantics.structure import last_name


class Beside:
    """The ways of a file beside the results of its models."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._flows, self._carriers, self._modules = flows(survey), carriers(survey), modules(survey)
        self._read: dict[Holder, dict[Scope, list[ast.expr]]] = {}
        self._explained: dict[Scope, bool] = {}

    def reads_loss(self, scope: Scope, holder: Holder) -> bool:
        """True if a function trains through an attribute of a model, or through a method that gets no input."""
        flow = self._flows.of(scope)
        return any(Fate.GRADIENT in flow.fate(node) for node in self._attributes(holder).get(scope, ()))

    def reads_attribute(self, scope: Scope, holder: Holder) -> bool:
        """True if a function reads an attribute of a model, or calls a method that gets no input."""
        return bool(self._attributes(holder).get(scope))

    def _attributes(self, holder: Holder) -> dict[Scope, list[ast.expr]]:
        """The reads of attributes of a model, and the calls of its methods without arguments, by function."""
        known = self._read.get(holder)
        if known is None:
            known = self._read[holder] = {}
            for use in self._modules.uses(holder):
                node = self._attribute_of(use)
                if node is not None:
                    known.setdefault(self._survey.scope_around(use), []).append(node)
        return known

    def _attribute_of(self, use: ast.expr) -> ast.expr | None:
        around = self._survey.model.parent(use)
        if not isinstance(around, ast.Attribute) or around.attr in NO_RESULTS:
            return None
        call = self._survey.model.parent(around)
        if not isinstance(call, ast.Call) or call.func is not around:
            return around
        return None if arguments(call) else call

    def explains_training(self, scope: Scope) -> bool:
        """True if each loss that a function backpropagates is seen to come from a run of a model."""
        known = self._explained.get(scope)
        if known is None:
            carried, stored = self._carriers.inside(scope), self._stored(scope)
            losses = [loss for call in scope.calls if (loss := list(_backpropagated(call)))]
            known = self._explained[scope] = all(
                any(Carry.TRAINED in carried.get(each, Carry.NONE) or dotted(each) in stored for each in loss)
                for loss in losses
            )
        return known

    def _stored(self, scope: Scope) -> set[str]:
        """The names and attributes that get a value with a seen gradient in a function: `self.loss = …`."""
        carried = self._carriers.inside(scope)
        stores = (node for node in scope.nodes if isinstance(node, ast.Assign))
        trained = (node for node in stores if Carry.TRAINED in carried.get(node.value, Carry.NONE))
        return {path for node in trained for path in map(dotted, node.targets) if path}


@once
def beside(survey: Survey) -> Beside:
    """The ways of a file beside the results of its models."""
    return Beside(survey)


def _backpropagated(call: ast.Call) -> Iterator[ast.expr]:
    """The expressions of which one is the loss: `loss.backward()`, `accelerator.backward(loss)`."""
    if "backward" in words(last_name(call)):
        yield from call.args
        if isinstance(call.func, ast.Attribute) and not is_self_or_cls(call.func.value):
            yield call.func.value

"""Proves that autograd may be off in a function or a statement: no result of it reaches a backward pass.

Names do not count as proof. Unknown code may do anything with its arguments. So there is no proof if a value that may
carry a gradient is passed to unknown code, stored or returned, or if unknown code gets a model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from perflint.rules._methods import is_self_or_cls
from perflint.rules.evaluation._callees import MODULE_CALL, NO_RESULTS, Takes, has_hooks
from perflint.rules.evaluation._carried import Carry, carriers
from perflint.rules.evaluation._flow import flows
from perflint.rules.evaluation._followed import followed
from perflint.rules.evaluation._graph import ESCAPES, Fate
from perflint.rules.evaluation._modules import modules
from perflint.rules.evaluation._runs import is_named_as_model
from perflint.rules.evaluation._scopes import OfFile, Scope, Survey
from perflint.semantics.heat.training import differentiates
from perflint.semantics.memo import once, once_per_key
from perflint.semantics.model import Model
from perflint.semantics.purpose.takers import is_overridden
from perflint.semantics.structure import arguments, path_of, walk
from perflint.semantics.values import Instance

_OPERATIONS = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript)
_HOOKS = re.compile(r"\.(?:register_hook|retain_grad)\(")
_VIEWS = frozenset({"H", "T", "imag", "mH", "mT", "real"})


class Proofs(OfFile):
    """The proofs about functions and statements of a file."""

    def __init__(self, survey: Survey) -> None:
        super().__init__(survey)
        self._flows, self._carriers, self._modules = flows(survey), carriers(survey), modules(survey)
        self._quiet: dict[Scope, bool] = {}

    def function(self, scope: Scope, is_evaluation: bool) -> bool:
        """True if autograd may be off in a whole function: no value with a gradient leaves it, also not as a result.

        A function that switches its model to evaluation may call one that is only named as a loss.
        """
        ways = ESCAPES if is_evaluation else ESCAPES | Fate.NAMED
        if has_hooks(self._survey) or self._lets_part_out(scope, ways):
            return False
        return self._is_quiet(scope) and not self._lets_out(scope, scope.nodes, ways)

    def statement(self, scope: Scope, statement: ast.stmt) -> bool:
        """True if autograd may be off in a statement: no value with a gradient that it computes goes on to others."""
        nodes = list(walk(statement))
        return (
            not has_hooks(self._survey)
            and self._asks_nothing(scope, nodes)
            and not self._lets_out(scope, nodes, ESCAPES | Fate.NAMED)
        )

    def keeps_graph(self, scope: Scope) -> bool:
        """True if a value that may have a gradient is stored, or goes to unknown code, in a function."""
        return self._lets_out(scope, scope.nodes, ESCAPES & ~(Fate.RETURNED | Fate.CALLED))

    def _is_quiet(self, scope: Scope) -> bool:
        """True if a function computes no gradient and stores no value that has one."""
        known = self._quiet.get(scope)
        if known is None:
            # A function that calls itself is not followed.
            self._quiet[scope] = False
            known = self._quiet[scope] = (
                not differentiates(self._model, scope.node)
                and self._asks_nothing(scope, scope.nodes)
                and not self._lets_out(scope, scope.nodes, ESCAPES & ~Fate.RETURNED)
                and all(map(self._is_quiet, self._survey.nested(scope)))
            )
        return known

    def _lets_out(self, scope: Scope, nodes: Iterable[ast.AST], ways: Fate) -> bool:
        """True if a result that may have a gradient leaves by one of some ways."""
        flow, carried = self._flows.of(scope), self._carriers.inside(scope)
        return any(carried.get(node, Carry.NONE) and flow.fate(node) & ways for node in nodes if _is_operation(node))

    def _lets_part_out(self, scope: Scope, ways: Fate) -> bool:
        """True if an attribute of a model leaves a function, in which the model may have stored a result."""
        flow = self._flows.of(scope)
        for node in scope.nodes:
            if isinstance(node, ast.Attribute) and node.attr not in NO_RESULTS and flow.fate(node) & ways:
                around = self._model.parent(node)
                called = isinstance(around, ast.Call) and around.func is node
                if not called and not is_self_or_cls(node.value) and self._is_model(node.value):
                    return True
        return False

    def _asks_nothing(self, scope: Scope, nodes: Iterable[ast.AST]) -> bool:
        """True if no call computes gradients, as far as code that is seen shows it, and other code gets no model."""
        return all(self._is_harmless(scope, node) for node in nodes if isinstance(node, ast.Call))

    def _is_harmless(self, scope: Scope, call: ast.Call) -> bool:
        takes = self._flows.callees.takes(call)
        if takes is Takes.FOLLOWED:
            function = followed(self._survey, call)
            return function is not None and self._is_quiet(function) and not self._is_overridden(function)
        if takes is Takes.UNKNOWN:
            return not self._gets_model(call)
        if self._model.target(call) == MODULE_CALL:
            if any(forward.asks for forward in self._flows.callees.classes(call.func)):
                return False
        if takes is Takes.GRADIENT:
            return False
        runs = self._carriers.runs_model(call) or self._flows.callees.surety_of(call) is not None
        return not (runs and self._is_of_any_class(call.func) and _hooks_gradients(self._model))

    def _is_of_any_class(self, model: ast.expr) -> bool:
        """True if the class of a model is not known."""
        members = self._model.value(model).members
        return not all(isinstance(each, Instance) and each.cls != "torch.nn.Module" for each in members)

    @once_per_key
    def _is_overridden(self, function: Scope) -> bool:
        """True if a subclass in another file may have a method of its own instead."""
        return function.owner is not None and is_overridden(self._model, function.owner.name, function.name)

    def _gets_model(self, call: ast.Call) -> bool:
        """True if a call gets a model, or is a method of one or of the object itself."""
        given = arguments(call)
        if isinstance(call.func, ast.Attribute):
            given.append(call.func.value)
        elif is_named_as_model(self._survey, call.func):
            return False
        return any(map(self._is_model, given))

    def _is_model(self, node: ast.expr) -> bool:
        if is_self_or_cls(node) or self._modules.shows(node):
            return True
        return bool(path_of(node)) and is_named_as_model(self._survey, node)


@once
def _hooks_gradients(model: Model) -> bool:
    """True if a file of the project hooks or keeps gradients of tensors, which fails where autograd is off.

    A model of an unknown class may be of any class of the project.
    """
    return bool(model.view.matching(_HOOKS))


@once
def proofs(survey: Survey) -> Proofs:
    """The proofs of a file."""
    return Proofs(survey)


def _is_operation(node: ast.AST) -> bool:
    return isinstance(node, _OPERATIONS) or (isinstance(node, ast.Attribute) and node.attr in _VIEWS)

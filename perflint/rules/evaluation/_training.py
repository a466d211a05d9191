"""Decides if code trains: by its calls, its arguments and its name."""

from __future__ import annotations

import ast

from perflint.rules._methods import is_false
from perflint.rules.evaluation._scopes import COMPREHENSIONS, PARAMETERS, Scope, Survey, dotted
from perflint.semantics.facts import rule_conventions
from perflint.semantics.memo import once
from perflint.semantics.structure import last_name
from perflint.semantics.values import Instance

_GRADIENT_CALLS = frozenset(
    {"backward", "enable_grad", "jacfwd", "jacrev", "jvp", "manual_backward", "retain_grad", "vjp", "vhp", "zero_grad"}
)
_DIFFERENTIATING = ("autograd.grad", "functional.jacobian", "functional.hessian")
_SCALES_DATA = frozenset({"fit_transform", "inverse_transform", "transform"})
_BACKPROPAGATING = frozenset({"backward", "manual_backward"})


class Training:
    """The parts of a file that train, found once."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._wanting: set[ast.AST] = set()
        """The nodes that ask for a gradient, and all nodes around these."""
        self._backward: set[ast.AST] = set()
        """The calls of `backward()`, and all nodes around them."""
        for kind in (ast.Attribute, ast.keyword, ast.Assign, ast.Call):
            for node in survey.all(kind):
                if self._asks(node):
                    self._mark(node, self._wanting)
                if isinstance(node, ast.Call) and last_name(node) in _BACKPROPAGATING:
                    self._mark(node, self._backward)

        self._mark_callers()

    def _mark_callers(self) -> None:
        """A call of a function of the file that calls `backward()`, directly or by others, asks for a gradient."""
        survey = self._survey
        waiting = [scope for scope in survey.scopes[1:] if scope.node in self._backward]
        found = set(waiting)
        while waiting:
            scope = waiting.pop()
            for caller, call in survey.callers.get(scope, ()):
                if isinstance(call.func, ast.Attribute) and survey.own_method(call) is not scope:
                    continue
                self._mark(call, self._wanting)
                for around in caller.chain:
                    if around not in found:
                        found.add(around)
                        waiting.append(around)

    def wants_gradient(self, node: ast.AST) -> bool:
        """True if code computes gradients or asks for them: backward, an optimizer's step, autograd.grad, an attack."""
        return node in self._wanting

    def _mark(self, node: ast.AST, marked: set[ast.AST]) -> None:
        around: ast.AST | None = node
        while around is not None and around not in marked:
            marked.add(around)
            around = self._survey.model.parent(around)

    def _asks(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute):
            if node.attr == "requires_grad":
                return isinstance(node.ctx, ast.Load) and not self._is_of_parameter(node)
            return node.attr == "grad" and not isinstance(node.value, ast.Attribute)
        if isinstance(node, ast.keyword):
            return node.arg in ("requires_grad", "create_graph") and not is_false(node.value)
        if isinstance(node, ast.Assign):
            return any(last_name(target) == "requires_grad" for target in node.targets) and not is_false(node.value)
        return isinstance(node, ast.Call) and self._is_gradient_call(node)

    def _is_of_parameter(self, attribute: ast.Attribute) -> bool:
        """True if the attribute of a model's parameter is read: `if p.requires_grad` in a loop over them."""
        for outer in self._survey.model.ancestors(attribute):
            if isinstance(outer, (ast.For, ast.comprehension)):
                if last_name(outer.iter) in PARAMETERS and isinstance(outer.iter, ast.Call):
                    return True
            elif isinstance(outer, COMPREHENSIONS):
                if any(last_name(each.iter) in PARAMETERS for each in outer.generators):
                    return True
            elif isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return False
        return False

    def _is_gradient_call(self, call: ast.Call) -> bool:
        name = last_name(call)
        if name in _GRADIENT_CALLS or dotted(call.func).endswith(_DIFFERENTIATING):
            return True
        if name == "requires_grad_":
            return not call.args or not is_false(call.args[0])
        if name == "train":
            # `model.train()` switches a mode; `train(model, loader)` trains.
            return isinstance(call.func, ast.Name)
        if name == "step" and isinstance(call.func, ast.Attribute):
            return is_optimizer_object(self._survey, call.func.value)
        if self._gives_optimizer(call, name):
            return True
        return bool(rule_conventions.calls_training(name))

    def _gives_optimizer(self, call: ast.Call, name: str) -> bool:
        """True if an optimizer or a gradient scaler is called, or given to code that may step it."""
        if is_optimizer_name(name) and name[0].islower():
            return True
        if rule_conventions.leaves_optimizer(name):
            return False
        given = (*call.args, *(keyword.value for keyword in call.keywords))
        return any(dotted(each) and is_optimizer_object(self._survey, each) for each in given)


@once
def training(survey: Survey) -> Training:
    """The parts of a file that train."""
    return Training(survey)


def wants_gradient(survey: Survey, node: ast.AST) -> bool:
    """True if code computes gradients or asks for them."""
    return training(survey).wants_gradient(node)


def is_called_in_training(survey: Survey, scope: Scope) -> bool:
    """True if a function of the file that computes gradients calls another one, so that autograd records that too."""
    callers = (caller for caller, _ in survey.callers.get(scope, ()) if not isinstance(caller.node, ast.Module))
    return any(caller is not scope and wants_gradient(survey, caller.node) for caller in callers)


def trains(survey: Survey, scope: Scope) -> bool:
    """True if code trains, by its body, its parameters or its name; the top level of a file may do anything."""
    if isinstance(scope.node, ast.Module):
        return True
    named = rule_conventions.names_training(scope.name) and not rule_conventions.names_evaluation(scope.name)
    return bool(named) or gets_optimizer(scope) or wants_gradient(survey, scope.node)


def gets_optimizer(scope: Scope) -> bool:
    """True if a function has a parameter for an optimizer or a gradient scaler, and not for a scaler of data."""
    if isinstance(scope.node, ast.Module):
        return False
    args = scope.node.args
    named = {arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs) if is_optimizer_name(arg.arg)}
    if named:
        asked = (node for node in scope.nodes if isinstance(node, ast.Attribute) and node.attr in _SCALES_DATA)
        named -= {dotted(node.value) for node in asked}
    return bool(named)


def is_optimizer_name(name: str) -> bool:
    """True if a name says that it holds an optimizer or a gradient scaler: `optimizer`, `loss_scaler`, `d_optim`."""
    return bool(rule_conventions.is_optimizer_or_scaler(name))


def is_optimizer_object(survey: Survey, node: ast.expr) -> bool:
    """True if an expression is an optimizer or a gradient scaler, by its class or else by its name."""
    value = survey.model.value(node)
    if isinstance(value, Instance):
        return value.cls.startswith("torch.optim.") and ".lr_scheduler" not in value.cls
    return bool(rule_conventions.mentions_optimizer(last_name(node)))

"""Decides if code belongs to a training: it steps an optimizer, goes backward, or a loop that trains runs it."""

from __future__ import annotations

import ast
from itertools import repeat
from typing import TYPE_CHECKING

from perflint.findings import Heat
from perflint.semantics.binders import LOOPS
from perflint.semantics.facts import conventions
from perflint.semantics.heat.branches import loops_around
from perflint.semantics.heat.turns import Loop, counts_epochs
from perflint.semantics.heat.work import named_optimizer
from perflint.semantics.memo import once, once_per_node
from perflint.semantics.structure import FUNCTIONS, arguments, last_name, path_of, walk
from perflint.semantics.values import Function, Instance

if TYPE_CHECKING:
    from perflint.semantics.heated import Heated
    from perflint.semantics.structure import FunctionNode

_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ASK = ("create_graph", "requires_grad")
_OF_AUTOGRAD = frozenset(
    {"enable_grad", "hessian", "jacfwd", "jacobian", "jacrev", "jvp", "retain_grad", "vhp", "vjp", "zero_grad"}
)
"""Functions and methods that are there for a gradient, but for `torch.autograd.grad`."""


def is_in_training(model: Heated, node: ast.AST) -> bool:
    """True if a node is in a loop that trains, or in a function that may be part of a step, as a model's method is.

    Any loop of a function that trains counts, too: it may run for each training.
    """
    loops, function = list(loops_around(model, node)), model.function(node)
    if any(_is_of_training(model, loop) for loop in loops):
        return True
    if function is None:
        return False
    return _is_part_of_step(model, function) or (bool(loops) and takes_steps(model, function))


@once_per_node
def takes_steps(model: Heated, around: ast.AST) -> bool:
    """True if a function or loop steps an optimizer."""
    return model.heat_map.work.steps(around)


@once_per_node
def goes_backward(model: Heated, around: ast.AST) -> bool:
    """True if a function or loop runs a backward pass, itself or in a function that it calls."""
    return model.heat_map.work.goes_backward(around)


def differentiates(model: Heated, around: ast.AST) -> bool:
    """True if code goes backward, steps an optimizer, or asks for gradients or reads them, or calls code that does.

    A called function that is not seen counts by its name, and if it gets an optimizer.
    """
    return around in _differentiating(model)


@once
def _differentiating(model: Heated) -> set[ast.AST]:
    """The nodes that compute gradients, and all nodes around these."""
    found: set[ast.AST] = set()
    for node in model.nodes(ast.Attribute, ast.Call, ast.Assign):
        outer: ast.AST | None = node if _asks_for_gradient(model, node) else None
        while outer is not None and outer not in found:
            found.add(outer)
            outer = model.parent(outer)
    return found


def _asks_for_gradient(model: Heated, node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        return not _is_false(node.value) and any(last_name(target) == "requires_grad" for target in node.targets)
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.value, ast.Name)
    work = model.heat_map.work.of_call(node)
    if work.trains or any(each.arg in _ASK and not _is_false(each.value) for each in node.keywords):
        return True
    name, path = last_name(node), path_of(node.func)
    if name == "requires_grad_":
        return not node.args or not _is_false(node.args[0])
    if name in _OF_AUTOGRAD or path.endswith("autograd.grad"):
        return True
    if any(isinstance(member, Function) for member in model.value(node.func).members):
        return False
    # `model.train()` sets a mode.
    if conventions.computes_gradients(name) and (name != "train" or isinstance(node.func, ast.Name)):
        return True
    if conventions.is_optimizer_or_scaler(name) and name.islower():
        return True
    return not conventions.leaves_optimizer(name) and any(map(is_optimizer, repeat(model), arguments(node)))


def is_optimizer(model: Heated, node: ast.expr) -> bool:
    """True if an expression is an optimizer, by its class or else by its name."""
    value = model.value(node)
    if isinstance(value, Instance):
        return value.cls.startswith("torch.optim.") and ".lr_scheduler" not in value.cls
    return isinstance(node, (ast.Name, ast.Attribute)) and named_optimizer(node) is not None


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def helps_to_train(model: Heated, node: ast.AST) -> bool:
    """True if a loop or function around a node steps an optimizer, or the name of a function or class says training.

    A loop over batches that steps none does not train, whatever is around it: it is the evaluation of an epoch.
    """
    for outer in model.ancestors(node):
        if isinstance(outer, (*LOOPS, *FUNCTIONS)) and takes_steps(model, outer):
            return True
        if isinstance(outer, (ast.For, ast.AsyncFor)) and model.heat_map.work.is_over_batches(outer.iter):
            return False
        if isinstance(outer, _NAMED) and conventions.belongs_to_training(outer.name):
            return True
    return False


@once_per_node
def _is_of_training(model: Heated, loop: Loop) -> bool:
    """True if a loop steps an optimizer, goes over epochs, or calls functions whose names say that they train."""
    if counts_epochs(loop) or takes_steps(model, loop):
        return True
    calls = (node for statement in loop.body for node in walk(statement) if isinstance(node, ast.Call))
    return any(_says_so(call) for call in calls)


def _says_so(call: ast.Call) -> bool:
    """True for `train_epoch(model, loader)` and `trainer.train(loader)`, not for `model.train()`, which sets a mode."""
    name = last_name(call)
    return bool(conventions.belongs_to_training(name)) and (name != "train" or bool(call.args or call.keywords))


@once_per_node
def _is_part_of_step(model: Heated, function: FunctionNode) -> bool:
    info = model.module.defined_by(function)
    if info is None or isinstance(function, ast.Lambda):
        return True
    named = model.heat_map.named(info)
    if (named is not None and named.heat is Heat.HOT) or model.heat_map.training_step(info) is not None:
        return True
    return bool(info.owner) and model.is_module(Instance(f"{model.module.name}.{info.owner}"))

"""Decides if code stands beside a loop over the steps: in the same function, before or after the loop."""

from __future__ import annotations

import ast

from perflint.findings import Heat
from perflint.semantics.around import loops_around
from perflint.semantics.heat.training import takes_steps
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.structure import FUNCTIONS, names_in, walk


def is_beside_epoch(model: Model, node: ast.AST) -> bool:
    """True if a node is in no loop of a function that iterates over the batches of a loader: a phase of training."""
    function = model.function(node)
    if function is None or isinstance(function, ast.Lambda) or any(loops_around(model, node)):
        return False
    return _goes_over_batches(model, function)


@once_per_node
def _goes_over_batches(model: Model, function: ast.AST) -> bool:
    """True if a function has a loop over the batches of a loader."""
    loops = (node for node in walk(function) if isinstance(node, (ast.For, ast.AsyncFor)))
    over = model.heat_map.work.is_over_batches
    return any(model.function(loop) is function and over(loop.iter) for loop in loops)


def is_step(model: Model, around: ast.AST) -> bool:
    """True if a loop runs a model in each iteration, beside its inner loops, or trains.

    Tokens are proposed, then checked at once. An epoch of reinforcement learning may have few steps.
    """
    if not isinstance(around, (ast.For, ast.AsyncFor, ast.While)):
        return False
    own = model.heat_map.work.of(around.body)
    return own.runs or own.calls_run or takes_steps(model, around)


@once_per_node
def holds_steps(model: Model, around: ast.AST) -> bool:
    """True if a function or loop holds a loop that runs a model in each iteration, not one over its layers."""
    function = around if isinstance(around, FUNCTIONS) else model.function(around)
    return any(
        isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        and node is not around
        and model.function(node) is function
        and model.heat(node.body[0]) is Heat.HOT
        and not is_over_layers(node)
        for node in walk(around)
    )


def is_over_layers(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """True for `for layer in layers: x = layer(x)`, which is part of a step."""
    if isinstance(loop, ast.While):
        return False
    names = names_in(loop.target)
    calls = (node.func for statement in loop.body for node in walk(statement) if isinstance(node, ast.Call))
    return any(
        (isinstance(callee, ast.Name) and callee.id in names)
        or (isinstance(callee, ast.Subscript) and not names.isdisjoint(names_in(callee.slice)))
        for callee in calls
    )

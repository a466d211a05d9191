"""Learning rates that a CUDA graph keeps as numbers, while the code around its replays changes them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.rules._memory.flows import made
from perflint.rules.cudagraph._replays import is_between, replays
from perflint.semantics.around import is_inside
from perflint.semantics.model import Model
from perflint.semantics.regions.captured import Capture
from perflint.semantics.structure import path_of
from perflint.semantics.values import Const, Instance, Origin, Scalar

_SCHEDULERS = "torch.optim.lr_scheduler."


def frozen_rates(model: Model) -> Iterator[tuple[ast.Call | ast.Assign | ast.AugAssign, Capture]]:
    """The changes of a learning rate around replays that the recorded step of its optimizer does not see."""
    recorded = _recorded(model)
    if not recorded:
        return
    every = replays(model)
    for node, optimizer in (*_scheduled(model), *_assigned(model)):
        capture = None if optimizer.origin is None else recorded.get(optimizer.origin)
        if capture is not None and is_between(model, node, capture, every):
            yield node, capture


def _recorded(model: Model) -> dict[Origin, Capture]:
    """The captures of steps of optimizers whose learning rate is a number, by the place that makes the optimizer."""
    found: dict[Origin, Capture] = {}
    for call in model.nodes(ast.Call):
        if model.target(call) != "torch.optim.Optimizer.step":
            continue
        optimizer, capture = model.call(call).receiver, model.captures.of(call)
        if capture is not None and isinstance(optimizer, Instance) and optimizer.origin is not None:
            rate = optimizer.argument("lr")
            is_number = rate is None or (isinstance(rate, Scalar) and rate.type == "float") or isinstance(rate, Const)
            if optimizer.arguments is not None and is_number:
                found[optimizer.origin] = capture
    return found


def _scheduled(model: Model) -> Iterator[tuple[ast.Call, Instance]]:
    """The steps of schedulers, with the optimizer."""
    for call in model.nodes(ast.Call):
        target = model.target(call)
        if target.startswith(_SCHEDULERS) and target.endswith(".step"):
            scheduler = model.call(call).receiver
            optimizer = scheduler.argument("optimizer") if isinstance(scheduler, Instance) else None
            if isinstance(optimizer, Instance):
                yield call, optimizer


def _assigned(model: Model) -> Iterator[tuple[ast.Assign | ast.AugAssign, Instance]]:
    """The assignments `group["lr"] = rate` of numbers, with the optimizer of the group."""
    statements: list[ast.Assign | ast.AugAssign] = [*model.nodes(ast.Assign), *model.nodes(ast.AugAssign)]
    for statement in statements:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if isinstance(target, ast.Subscript) and model.value(target.slice) == Const("lr"):
            optimizer = _owner(model, target.value)
            if isinstance(optimizer, Instance):
                yield statement, optimizer


def _owner(model: Model, group: ast.expr) -> object:
    """The optimizer of `optimizer.param_groups[0]`, or of the variable of a loop over its groups."""
    group = made(model, group)
    if isinstance(group, ast.Subscript):
        group = group.value
    elif isinstance(group, ast.Name):
        named = (each for each in model.nodes(ast.For) if path_of(each.target) == group.id)
        group = next((each.iter for each in named if is_inside(model, group, each)), group)
    if isinstance(group, ast.Attribute) and group.attr == "param_groups":
        return model.value(group.value)
    return None

"""Decides if a hyperparameter of an optimizer is a tensor: torch then updates in another way."""

from __future__ import annotations

import ast
import re

from perflint.rules._project_text import project_says
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.values import Const, Mapping, Sequence, Value

_NAMES = ("lr", "betas", "eps", "weight_decay", "momentum")
_WRITES = re.compile(rf"[\"'](?:{'|'.join(_NAMES)})[\"']\](?:\[\d\])?\s*(?:\.\w+_\(|=\s*torch\.)")
"""`group["lr"].fill_(…)` and `group["lr"] = torch.tensor(…)`."""


def has_tensors(site: CallSite) -> bool:
    """True if a hyperparameter of the optimizer that a call makes is a tensor, or code of the project makes it one."""
    given = [keyword.value for keyword in site.node.keywords] + site.node.args[1:]
    params = site.argument("params", 0)
    return (
        any(_holds_tensor(site.value(each)) for each in given if each is not params)
        or (params is not None and _group_holds_tensor(site.value(params)))
        or any(_holds_tensor(site.value(value)) for value in _assigned(site.model))
        or project_says(site.model, _WRITES)
    )


def _holds_tensor(value: Value) -> bool:
    """True if a value is a tensor, or a sequence with one."""
    return any(
        member.tensor is not None
        or (isinstance(member, Sequence) and any(map(_holds_tensor, member.items or (member.element,))))
        for member in value.members
    )


def _group_holds_tensor(value: Value) -> bool:
    """True if a list of groups of parameters has one with a tensor beside its parameters."""
    lists = [member for member in value.members if isinstance(member, Sequence)]
    groups = [group for each in lists for item in each.items or (each.element,) for group in item.members]
    items = [item for group in groups if isinstance(group, Mapping) for item in group.items]
    return any(key != "params" and _holds_tensor(value) for key, value in items)


def _assigned(model: Model) -> list[ast.expr]:
    """The values that code of the file assigns to hyperparameters: `group["lr"] = value`."""
    return [
        assignment.value
        for assignment in model.nodes(ast.Assign)
        for target in assignment.targets
        if isinstance(target, ast.Subscript)
        and isinstance(key := model.value(target.slice), Const)
        and key.value in _NAMES
    ]

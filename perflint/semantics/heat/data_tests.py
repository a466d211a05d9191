"""Branches behind tests of data: for other kinds of arguments, for other devices, for values that are reported."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perflint.semantics.facts import conventions
from perflint.semantics.structure import last_name, tested
from perflint.semantics.values import NONE, Device, Evidence, Tensor, Value, scalar_type

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred


def tells_of_tensor(model: Inferred, branch: ast.If | ast.IfExp) -> bool:
    """True if a branch only reports, and the values of a tensor decide if it does: `if x[0] > 1: print(x)`.

    The test itself waits for the tensor.
    """
    if isinstance(branch, ast.IfExp) or not any(model.value(each).tensor is not None for each in tested(branch.test)):
        return False
    calls = [each.value for each in branch.body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)]
    return len(calls) == len(branch.body) and all(conventions.writes_log(last_name(call)) for call in calls)


def is_for_other_place(model: Inferred, test: ast.expr, outcome: bool) -> bool:
    """True if a test that comes out as `outcome` says that a tensor of the CPU is on the GPU: `if x.is_cuda:`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_for_other_place(model, test.operand, not outcome)
    if not isinstance(test, ast.Attribute) or (test.attr, outcome) not in (("is_cuda", True), ("is_cpu", False)):
        return False
    return all(map(_is_made_by_cpu, model.value(test.value).members))


def _is_made_by_cpu(member: Value) -> bool:
    return isinstance(member, Tensor) and member.device is Device.CPU and member.evidence is Evidence.CERTAIN


def is_for_other_kind(model: Inferred, test: ast.expr, outcome: bool) -> bool:
    """True if a test that comes out as `outcome` says that a parameter is a number, though its annotation says tensor.

    `def forward(self, x, t: Tensor | int)`: callers pass tensors, unless one is known to pass something else.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_for_other_kind(model, test.operand, not outcome)
    name = "" if outcome else _asked(test)
    function = model.function(test) if name else None
    if function is None or isinstance(function, ast.Lambda):
        return False
    parameter = _parameter(function, name)
    alone, _ = model.parameters(function)
    value = alone.get(parameter, NONE)
    is_annotated = value.tensor is not None and value.tensor.evidence is Evidence.ANNOTATION
    return (
        is_annotated and all(map(_is_tensor_or_number, value.members)) and not _gets_others(model, function, parameter)
    )


def _is_tensor_or_number(member: Value) -> bool:
    """False for lists and arrays: a function that takes these mostly gets them."""
    return isinstance(member, Tensor) or member == NONE or scalar_type(member) in ("int", "float", "bool")


def _gets_others(model: Inferred, function: ast.FunctionDef | ast.AsyncFunctionDef, parameter: str) -> bool:
    """True if a known call passes something other than a tensor for a parameter."""
    info = model.module.defined_by(function)
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if info is None:
        return False
    bound = names[1:] if info.owner and names[:1] == ["self"] else names
    position = bound.index(parameter) if parameter in bound else None
    given = [arguments.get(parameter, position) for arguments in model.received(info)]
    return any(value is not None and not value.is_unknown and value.tensor is None for value in given)


def _asked(test: ast.expr) -> str:
    """The name `x` of `torch.is_tensor(x)` and `isinstance(x, torch.Tensor)`; "" for other tests."""
    if not isinstance(test, ast.Call) or not test.args or not isinstance(test.args[0], ast.Name):
        return ""
    asks = last_name(test) == "is_tensor" or (
        last_name(test) == "isinstance" and len(test.args) == 2 and last_name(test.args[1]) == "Tensor"
    )
    return test.args[0].id if asks else ""


def _parameter(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    """The parameter that a name stands for at first: `timesteps = timestep`."""
    for each in function.body:
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Name):
            if any(isinstance(target, ast.Name) and target.id == name for target in each.targets):
                return each.value.id
    return name

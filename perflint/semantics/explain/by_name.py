"""The conventions that decided values, found afterwards."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perflint.semantics.binders import Binding
from perflint.semantics.facts import conventions, named
from perflint.semantics.facts.concepts import Entry
from perflint.semantics.structure import FunctionInfo, last_name
from perflint.semantics.values import Device, Evidence, Function, Tensor, Unknown, Value

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred


def of_call(model: Inferred, node: ast.expr) -> tuple[Entry, ...]:
    """The convention for the name of an unknown function whose result an expression is."""
    if not isinstance(node, ast.Call) or isinstance(model.value(node.func), Function):
        return ()
    return _all(named.maker_behind(last_name(node.func), model.value(node)))


def of_binding(model: Inferred, binding: Binding) -> tuple[Entry, ...]:
    """The convention by which a variable has the value that a binding gives it."""
    node, source = binding.node, binding.value
    if not isinstance(node, ast.expr) or source is None:
        return ()
    if binding.whole and not isinstance(model.value(source), Unknown):
        return of_call(model, source)
    return of_call(model, source) or _all(named.entry_behind(last_name(node), model.value(node)))


def of_attribute(model: Inferred, node: ast.Name | ast.Attribute) -> tuple[Entry, ...]:
    """The convention by which an attribute of something unknown has its value."""
    if not isinstance(node, ast.Attribute) or not isinstance(model.value(node.value), Unknown):
        return ()
    return _all(named.entry_behind(node.attr, model.value(node)))


def of_parameter(info: FunctionInfo, arg: ast.arg, value: Value) -> tuple[Entry, ...]:
    """The convention by which a parameter has a value that no caller shows."""
    tensor = value.tensor
    if tensor is None:
        return _all(named.entry_behind(arg.arg, value) if arg.annotation is None else None)
    if tensor.device is Device.MODEL and not tensor.leaf:
        return _all(conventions.is_batch_hook(info.name) or conventions.gets_batch(info.name))
    return _all(named.entry_behind(arg.arg, value) or _on_cpu(info, tensor) or of_schedule(arg, value))


def of_schedule(arg: ast.arg, value: Value) -> Entry | None:
    """The convention by which a parameter is an item of the schedule of its object."""
    is_item = isinstance(value, Tensor) and value.rank == 0 and value.evidence is Evidence.CONVENTION
    return conventions.is_time_step(arg.arg) if is_item else None


def _on_cpu(info: FunctionInfo, tensor: Tensor) -> Entry | None:
    """The convention for the name of a function that puts its parameters on the CPU."""
    by_convention = tensor.device is Device.CPU and tensor.evidence is Evidence.CONVENTION
    return conventions.works_on_cpu(info.name) if by_convention else None


def _all(entry: Entry | None) -> tuple[Entry, ...]:
    return () if entry is None else (entry,)

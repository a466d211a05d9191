"""Parameters for which a call that runs each step passes a tensor on the CPU, whatever other calls pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from perflint.findings import Heat
from perflint.semantics.memo import once, once_per_node
from perflint.semantics.model import Model
from perflint.semantics.structure import FunctionInfo, FunctionNode, last_name
from perflint.semantics.values import Device, Instance, Tensor, Value
from perflint.source.quoting import quoted


def given_on_cpu(model: Model, node: ast.AST) -> str:
    """The call of each step that passes a tensor on the CPU for a parameter, in words.

    Empty if there is none, or if `node` is not a parameter as the function gets it.
    """
    info = _function_given(model, node)
    return "" if info is None or not isinstance(node, ast.Name) else _given(model, info.node).get(node.id, "")


def values_given(model: Model, node: ast.AST) -> list[Value]:
    """The values that the calls of the project pass for a parameter; none if one of them is not seen."""
    info = _function_given(model, node)
    if info is None or not isinstance(node, ast.Name):
        return []
    ordered = ordered_parameters(info)
    at = ordered.index(node.id) if node.id in ordered else -1
    others = [None if call.arguments is None else call.arguments.get(node.id, at) for call in model.passing(info)]
    passed = [*map(model.value, arguments_given(model, node)), *others]
    values = [each for each in passed if each is not None]
    return values if len(values) == len(passed) else []


def arguments_given(model: Model, node: ast.AST) -> list[ast.expr]:
    """The arguments that the calls of the file pass for a parameter."""
    return [each for each in _passed_for(model, node) if each is not None]


def arguments_of_all(model: Model, node: ast.expr) -> list[ast.expr]:
    """The arguments that all calls of the file pass for a parameter; none if one of them leaves it out."""
    found = _passed_for(model, node)
    return [] if None in found else [each for each in found if each is not None]


def _passed_for(model: Model, node: ast.AST) -> list[ast.expr | None]:
    """The arguments that the calls of the file pass for a parameter; None for a call that leaves it out."""
    info = _function_given(model, node)
    if info is None or not isinstance(node, ast.Name):
        return []
    return [named_arguments(call, info).get(node.id) for call in _own_calls(model, info)]


def _function_given(model: Model, node: ast.AST) -> FunctionInfo | None:
    """The function around a name that is a parameter of it, and has the value that the function gets."""
    info = model.module.defined_by(model.function(node))
    if not isinstance(node, ast.Name) or info is None or isinstance(info.node, ast.Lambda):
        return None
    bound = model.origins.of(node).node
    return info if isinstance(bound, ast.arg) and bound.arg == node.id else None


def ordered_parameters(info: FunctionInfo) -> list[str]:
    """The parameters of a function by position, without the object."""
    ordered = [arg.arg for arg in (*info.node.args.posonlyargs, *info.node.args.args)]
    is_static = any(last_name(each) == "staticmethod" for each in getattr(info.node, "decorator_list", ()))
    return ordered[1:] if info.owner and not is_static else ordered


def named_arguments(call: ast.Call, info: FunctionInfo) -> dict[str, ast.expr]:
    """The arguments that a call passes to a function, by parameter."""
    given = dict(zip(ordered_parameters(info), call.args, strict=False))
    return given | {each.arg: each.value for each in call.keywords if each.arg is not None}


@once_per_node
def _given(model: Model, function: FunctionNode) -> Mapping[str, str]:
    """The parameters of a function for which a call of each step passes a tensor on the CPU, with that call."""
    info = model.module.defined_by(function)
    if info is None:
        return {}
    found: dict[str, str] = {}
    for own in _own_calls(model, info):
        if model.heat(own) is Heat.HOT:
            for name, node in named_arguments(own, info).items():
                if _is_on_cpu(model.value(node)):
                    found.setdefault(name, f"line {own.lineno} passes {quoted(ast.unparse(node))}")
    for call in model.passing(info):
        if call.heat is Heat.HOT and call.arguments is not None:
            around = "the top level" if call.caller is None else quoted(call.caller.qualname)
            for at, name in enumerate(ordered_parameters(info)):
                if _is_on_cpu(call.arguments.get(name, at)):
                    found.setdefault(name, f"passed by {around}")
    return found


def _own_calls(model: Model, info: FunctionInfo) -> Iterator[ast.Call]:
    """The calls of a function in its own file."""
    calls = calls_by_callee(model)
    yield from calls.get(info, ())
    if info.name in ("forward", "__call__"):
        yield from calls.get(f"{model.module.name}.{info.owner}", ())


@once
def calls_by_callee(model: Model) -> Mapping[FunctionInfo | str, list[ast.Call]]:
    """The calls of a file by the function of the file, or by the class of the object, that they call."""
    found: dict[FunctionInfo | str, list[ast.Call]] = {}
    for call in model.nodes(ast.Call):
        for callee in model.value(call.func).members:
            called = callee.cls if isinstance(callee, Instance) else model.function_of(callee)
            if called is not None:
                found.setdefault(called, []).append(call)
    return found


def _is_on_cpu(value: Value | None) -> bool:
    return isinstance(value, Tensor) and value.device is Device.CPU

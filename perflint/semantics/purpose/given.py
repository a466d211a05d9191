"""Parameters for which a call that runs each step passes a tensor on the CPU, whatever other calls pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from perflint.findings import Heat
from perflint.semantics.memo import once, once_per_node
from perflint.semantics.model import Model
from perflint.semantics.structure import FunctionInfo, last_name
from perflint.semantics.values import Device, Function, Instance, Tensor, Value
from perflint.source.quoting import quoted


def given_on_cpu(model: Model, node: ast.AST) -> str:
    """The call of each step that passes a tensor on the CPU for a parameter, in words.

    Empty if there is none, or if `node` is not a parameter as the function gets it.
    """
    function = _function_given(model, node)
    return "" if function is None or not isinstance(node, ast.Name) else _given(model, function).get(node.id, "")


def values_given(model: Model, node: ast.AST) -> list[Value]:
    """The values that the calls of the project pass for a parameter; none if one of them is not seen."""
    function = _function_given(model, node)
    info = model.module.defined_by(function)
    if function is None or info is None or not isinstance(node, ast.Name):
        return []
    ordered = ordered_parameters(function, info)
    found = [named[node.id] for _, named in _named_arguments(model, info, ordered) if node.id in named]
    others = [None if call.arguments is None else call.arguments for call in model.passing(info)]
    at = ordered.index(node.id) if node.id in ordered else -1
    passed = [*map(model.value, found), *(None if each is None else each.get(node.id, at) for each in others)]
    values = [each for each in passed if each is not None]
    return values if len(values) == len(passed) else []


def arguments_given(model: Model, node: ast.expr) -> list[ast.expr]:
    """The arguments that the calls of the file pass for a parameter."""
    function = _function_given(model, node)
    info = model.module.defined_by(function)
    if function is None or info is None or not isinstance(node, ast.Name):
        return []
    calls = _named_arguments(model, info, ordered_parameters(function, info))
    return [named[node.id] for _, named in calls if node.id in named]


def arguments_of_all(model: Model, node: ast.expr) -> list[ast.expr]:
    """The arguments that all calls of the file pass for a parameter; none if one of them leaves it out."""
    function = _function_given(model, node)
    info = model.module.defined_by(function)
    if function is None or info is None or not isinstance(node, ast.Name):
        return []
    calls = [named for _, named in _named_arguments(model, info, ordered_parameters(function, info))]
    return [named[node.id] for named in calls] if all(node.id in named for named in calls) else []


def _function_given(model: Model, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function around a name that is a parameter of it, and has the value that the function gets."""
    function = model.function(node)
    if not isinstance(node, ast.Name) or function is None or isinstance(function, ast.Lambda):
        return None
    bound = model.origins.of(node).node
    return function if isinstance(bound, ast.arg) and bound.arg == node.id else None


def ordered_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef, info: FunctionInfo) -> list[str]:
    """The parameters of a function by position, without the object."""
    ordered = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    is_static = any(last_name(each) == "staticmethod" for each in function.decorator_list)
    return ordered[1:] if info.owner and not is_static else ordered


def _named_arguments(
    model: Model, info: FunctionInfo, ordered: list[str]
) -> Iterator[tuple[ast.Call, dict[str, ast.expr]]]:
    """The calls of a function in its own file, each with its arguments by parameter."""
    for own in _own_calls(model, info):
        given = dict(zip(ordered, own.args, strict=False))
        yield own, given | {each.arg: each.value for each in own.keywords if each.arg is not None}


@once_per_node
def _given(model: Model, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Mapping[str, str]:
    """The parameters of a function for which a call of each step passes a tensor on the CPU, with that call."""
    info = model.module.defined_by(function)
    if info is None:
        return {}
    ordered = ordered_parameters(function, info)
    found: dict[str, str] = {}
    for own, given in _named_arguments(model, info, ordered):
        if model.heat(own) is Heat.HOT:
            for name, node in given.items():
                if _is_on_cpu(model.value(node)):
                    found.setdefault(name, f"line {own.lineno} passes {quoted(ast.unparse(node))}")
    for call in model.passing(info):
        if call.heat is Heat.HOT and call.arguments is not None:
            around = "the top level" if call.caller is None else quoted(call.caller.qualname)
            for at, name in enumerate(ordered):
                if _is_on_cpu(call.arguments.get(name, at)):
                    found.setdefault(name, f"passed by {around}")
    return found


def _own_calls(model: Model, info: FunctionInfo) -> Iterator[ast.Call]:
    """The calls of a function in its own file."""
    calls = _calls(model)
    yield from calls.get((info.node.lineno, info.node.col_offset), ())
    if info.name in ("forward", "__call__"):
        yield from calls.get(f"{model.module.name}.{info.owner}", ())


@once
def _calls(model: Model) -> Mapping[tuple[int, int] | str, list[ast.Call]]:
    """The calls of a file by the place of the function of the file, or by the class of the object, that they call."""
    found: dict[tuple[int, int] | str, list[ast.Call]] = {}
    for call in model.nodes(ast.Call):
        for callee in model.value(call.func).members:
            if isinstance(callee, Function) and callee.module == model.module.name:
                found.setdefault((callee.line, callee.column), []).append(call)
            elif isinstance(callee, Instance):
                found.setdefault(callee.cls, []).append(call)
    return found


def _is_on_cpu(value: Value | None) -> bool:
    return isinstance(value, Tensor) and value.device is Device.CPU

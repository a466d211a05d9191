"""Whether tensors that are made while autograd is off are used by code that runs with it on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.rules.evaluation._scopes import Scope, Survey, dotted
from perflint.semantics.structure import last_name
from perflint.semantics.values import (
    Array,
    Const,
    DeviceValue,
    Dtype,
    Mapping,
    Scalar,
    Sequence,
    Unknown,
    Value,
)

_HOST_BUILTINS = frozenset({"bool", "float", "int", "len", "range", "repr", "round", "str", "time"})
_HOST_METHODS = frozenset({"format", "item", "join", "numpy", "perf_counter", "time", "tolist"})
_READS = _HOST_METHODS | {"cpu", "device", "dtype", "numel", "shape", "size"}
_COLLECTIONS = frozenset({"defaultdict", "dict", "list", "set", "tuple"})
_GROWING = frozenset({"add", "append", "extend", "insert", "setdefault", "update"})
_DEEPEST = 8


def escapes(survey: Survey, scope: Scope, within: ast.AST) -> bool:
    """Whether `within`, a function or a `with` statement in `scope`, may let tensors out.

    False only where all that leaves it is seen to be Python numbers, text, arrays or
    containers of those.
    """
    region = _nodes_inside(within)
    if any(not is_host(survey, scope, value) for value in _returned(region)):
        return True
    outside = _loaded_outside(survey, scope, within, region)
    for target, value in _stored(region):
        if ("." in target or target in outside) and not is_host(survey, scope, value):
            return True
    return False


def _nodes_inside(within: ast.AST) -> set[ast.AST]:
    found: set[ast.AST] = set()
    stack: list[ast.AST] = [within]
    while stack:
        node = stack.pop()
        found.add(node)
        stack.extend(
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        )
    return found


def _returned(region: set[ast.AST]) -> Iterator[ast.expr]:
    for node in region:
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and node.value is not None:
            yield node.value


def _loaded_outside(survey: Survey, scope: Scope, within: ast.AST, region: set[ast.AST]) -> set[str]:
    if within is scope.node:
        shared = [node for node in region if isinstance(node, (ast.Global, ast.Nonlocal))]
        return {name for node in shared for name in node.names}
    return {
        node.id
        for node in scope.nodes
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node not in region
        and not _is_read(survey.model.parent(node))
    }


def _is_read(around: ast.AST | None) -> bool:
    """Whether the host reads a tensor there, which any tensor allows."""
    if isinstance(around, ast.Attribute):
        return around.attr in _READS
    return isinstance(around, ast.Call) and last_name(around) in _HOST_BUILTINS


def _stored(region: set[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """What is assigned to, or put into, each name or attribute."""
    for node in region:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _into(target, node.value)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield from _into(node.target, node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWING:
            if node.func.attr == "update" and len(node.args) != 1:
                continue
            for argument in node.args:
                yield dotted(node.func.value), argument


def _into(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        for index, element in enumerate(target.elts):
            yield from _into(element, parts[index] if len(parts) == len(target.elts) else value)
        return
    while isinstance(target, (ast.Subscript, ast.Starred)):
        target = target.value
    name = dotted(target)
    if name:
        yield name, value


def is_host(survey: Survey, scope: Scope, expression: ast.expr, depth: int = _DEEPEST) -> bool:
    """Whether an expression is seen to hold no tensor."""
    known = _host_value(survey.model.value(expression))
    if known is not None:
        return known
    if depth == 0:
        return False
    parts = _parts(expression)
    if parts is not None:
        return all(is_host(survey, scope, part, depth - 1) for part in parts)
    if isinstance(expression, ast.Call):
        return _is_host_call(survey, scope, expression, depth)
    return isinstance(expression, ast.Name) and _is_host_name(survey, scope, expression.id, depth)


def _host_value(value: Value) -> bool | None:
    """True for host values, False for tensors, None where it is not known."""
    if value.tensor is not None:
        return False
    answers = {_host_member(member) for member in value.members}
    if False in answers:
        return False
    return True if answers == {True} else None


def _host_member(value: Value) -> bool | None:
    if isinstance(value, (Const, Scalar, Array, DeviceValue, Dtype)):
        return True
    if isinstance(value, (Sequence, Mapping)):
        items = value.items if isinstance(value, Sequence) else tuple(item for _, item in value.items)
        parts = [*(items or ()), *([] if items and isinstance(value.element, Unknown) else [value.element])]
        answers = {_host_value(part) for part in parts}
        return False if False in answers else True if answers == {True} else None
    return None


def _parts(expression: ast.expr) -> list[ast.expr] | None:
    """The parts that decide, for expressions that only combine them."""
    if isinstance(expression, (ast.Constant, ast.JoinedStr)):
        return []
    if isinstance(expression, (ast.Tuple, ast.List, ast.Set)):
        return expression.elts
    if isinstance(expression, ast.Dict):
        return expression.values
    if isinstance(expression, ast.BinOp):
        return [expression.left, expression.right]
    if isinstance(expression, ast.UnaryOp):
        return [expression.operand]
    if isinstance(expression, ast.IfExp):
        return [expression.body, expression.orelse]
    if isinstance(expression, ast.DictComp):
        return [expression.value]
    return [expression.elt] if isinstance(expression, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) else None


def _is_host_call(survey: Survey, scope: Scope, call: ast.Call, depth: int) -> bool:
    name, target = last_name(call), survey.model.target(call)
    if target.startswith("numpy.") or dotted(call.func).startswith(("np.", "numpy.", "math.")):
        return True
    if isinstance(call.func, ast.Attribute):
        return name in _HOST_METHODS
    if name in _HOST_BUILTINS:
        return True
    if name in _COLLECTIONS or name in ("sum", "max", "min", "sorted"):
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        return all(
            (isinstance(v, ast.Name) and v.id in _COLLECTIONS) or is_host(survey, scope, v, depth - 1) for v in values
        )
    return False


def _is_host_name(survey: Survey, scope: Scope, name: str, depth: int) -> bool:
    """Whether all that a local name ever gets is host data."""
    if isinstance(scope.node, ast.Module):
        nodes = set(scope.nodes)
    else:
        nodes = _nodes_inside(scope.node)
        arguments = scope.node.args
        if name in {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}:
            return False
    values = [value for target, value in _stored(nodes) if target == name]
    return bool(values) and all(
        (isinstance(value, ast.Name) and value.id == name) or is_host(survey, scope, value, depth - 1)
        for value in values
    )

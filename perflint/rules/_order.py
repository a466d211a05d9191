"""True if a fix may evaluate two expressions in the other order."""

from __future__ import annotations

import ast

from perflint.rules._operators import operators
from perflint.semantics.facts import torch_api
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, walk
from perflint.semantics.values import Instance, Name, Tensor, scalar_type

_BUILTINS = frozenset("int float bool complex abs len round pow isinstance id type str".split())
_OF_TORCH = frozenset(("torch", "torch.Tensor", "torch.fft", "torch.linalg", "torch.special"))
_HAVE_EFFECTS = operators("effects", "have_effects")
"""Functions of torch that draw random numbers or change an argument, without a name that says so by its end."""
_OTHERS = operators("effects", "asks_devices")


def may_swap(model: Model, *expressions: ast.expr) -> bool:
    """True if evaluating expressions of one statement in any other order gives the same values.

    It does if none of them has effects, or if only one has and the others do not depend on these effects.
    """
    active = [each for each in expressions if has_effects(model, each)]
    if not active:
        return True
    return len(active) == 1 and all(_is_fixed(model, each, active[0]) for each in expressions if each is not active[0])


def has_effects(model: Model, node: ast.expr, *, but_for: frozenset[str] = frozenset()) -> bool:
    """True if an expression may change the value of another one: it binds a name, or calls unknown code.

    A property of the file is such code. Calls of the functions `but_for` do not count.
    """
    for each in walk(node):
        if _acts(model, each) and not (isinstance(each, ast.Call) and model.target(each) in but_for):
            return True
        if isinstance(each, ast.Attribute) and _is_active(model, each):
            return True
    return False


def _acts(model: Model, node: ast.AST) -> bool:
    if isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
        return True
    return isinstance(node, ast.Call) and not _only_computes(model, node)


def _is_active(model: Model, node: ast.Attribute) -> bool:
    """True if reading an attribute may run a property with effects, or such a `__getattr__`."""
    value = model.value(node.value)
    if isinstance(value, (Tensor, Name)):
        return False
    if not _active_properties(model).isdisjoint((node.attr, *_FOR_ALL)):
        return True
    classes = {cls for each in value.members if isinstance(each, Instance) for cls in model.lineage(each.cls)}
    return any(_is_active_elsewhere(model, cls, node.attr) for cls in classes)


def _is_active_elsewhere(model: Model, cls: str, name: str) -> bool:
    """True if a class of another file has a property of a name, or a method for all attributes, that does anything."""
    found = model.view.klass(cls)
    if found is None or found[0] is model.module:
        return False
    methods = [found[1].methods[each] for each in (name, *_FOR_ALL) if each in found[1].methods]
    return any(
        isinstance(each, (ast.Call, ast.NamedExpr, ast.Await)) or _stores(each)
        for method in methods
        if method.name in _FOR_ALL or _is_property(method.node)
        for each in walk(method.node)
    )


def _is_property(function: ast.AST) -> bool:
    return any(last_name(each) == "property" for each in getattr(function, "decorator_list", ()))


_FOR_ALL = ("__getattr__", "__getattribute__")


@once
def _active_properties(model: Model) -> frozenset[str]:
    """The names of the properties of the file that may do more than compute, and of the methods for all attributes."""
    return frozenset(
        function.name
        for function in model.nodes(ast.FunctionDef)
        if (function.name in _FOR_ALL or _is_property(function))
        and any(_acts(model, each) or _stores(each) for statement in function.body for each in walk(statement))
    )


def _stores(node: ast.AST) -> bool:
    """True for `self.count` and `self.seen[k]` as the target of an assignment, and for names of other scopes."""
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return not isinstance(node.ctx, ast.Load)
    return isinstance(node, (ast.Global, ast.Nonlocal))


def _only_computes(model: Model, call: ast.Call) -> bool:
    target = torch_api.canonical(model.target(call))
    head, _, leaf = target.rpartition(".")
    if head == "builtins":
        return leaf in _BUILTINS
    if head == "math" or target in _OTHERS:
        return True
    if head not in _OF_TORCH or leaf.endswith("_") or leaf in _HAVE_EFFECTS:
        return False
    known = head == "torch.Tensor" or torch_api.result(target) is not None
    return known and not any(keyword.arg in ("out", "inplace", None) for keyword in call.keywords)


def _is_fixed(model: Model, node: ast.expr, active: ast.expr) -> bool:
    """True if an expression gives the same whatever other code does: it is made of constants and local names."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):
        return _is_local(model, node) and not any(
            isinstance(each, ast.NamedExpr) and each.target.id == node.id for each in walk(active)
        )
    if isinstance(node, (ast.UnaryOp, ast.BinOp)):
        # An object may change; a number does not.
        parts = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        return all(scalar_type(model.value(part)) and _is_fixed(model, part, active) for part in parts)
    return isinstance(node, ast.Tuple) and all(_is_fixed(model, each, active) for each in node.elts)


def _is_local(model: Model, node: ast.Name) -> bool:
    """True if only the function around a name binds it."""
    variable = model.symbols.variable(node)
    return variable.scope.node is model.function(node) and not variable.is_shared

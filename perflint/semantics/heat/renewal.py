"""Branches that keep what they make, so that their test has the other outcome in the next step."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from perflint.semantics.binders import own_nodes
from perflint.semantics.structure import last_name, walk
from perflint.semantics.values import Class, Function, Name

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred

_PROPERTIES = frozenset("device dim dtype is_cuda len ndim shape size type".split())
"""The attributes, methods and functions that tell what mostly stays the same from step to step."""


def renews(model: Inferred, test: ast.expr, outcome: bool, block: Sequence[ast.AST]) -> bool:
    """True if a block runs once, or after a change of the input, since it keeps what its test asks for.

    `if self.size != x.shape: self.size = x.shape; …`, `if isinstance(self.mean, np.ndarray): self.mean =
    torch.from_numpy(self.mean)`, and the same where a method that the block calls keeps it.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return renews(model, test.operand, not outcome, block)
    if isinstance(test, ast.BoolOp):
        # `or` that is true, and `and` that is false, need one operand alone: each must be such a comparison.
        needs_one = isinstance(test.op, ast.Or) is outcome
        return (all if needs_one else any)(renews(model, each, outcome, block) for each in test.values)
    other = _other_than_tensor(model, test, outcome)
    if other is not None and _root(other) == ast.unparse(other):
        kept = (value for target, value in _stores(model, block) if ast.unparse(target) == ast.unparse(other))
        return any(model.value(value).tensor is not None for value in kept)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    if isinstance(test.ops[0], ast.Eq if outcome else ast.NotEq) or not isinstance(test.ops[0], _TELL_DIFFERENCE):
        return False
    sides = (test.left, test.comparators[0])
    return any(
        _root(kept) and _is_property(model, given) and any(_keeps(each, kept, given) for each in _stores(model, block))
        for kept, given in (sides, sides[::-1])
    )


_TELL_DIFFERENCE = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _other_than_tensor(model: Inferred, test: ast.expr, outcome: bool) -> ast.expr | None:
    """The object that a test which comes out as `outcome` shows to be no tensor: `a` of `type(a) == np.ndarray`."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (*_IS, *_IS_NOT)):
        asked, types, outcome = test.left, test.comparators[0], isinstance(test.ops[0], _IS) is outcome
        arguments = asked.args if isinstance(asked, ast.Call) and last_name(asked) == "type" else []
    elif isinstance(test, ast.Call) and last_name(test) == "isinstance" and len(test.args) == 2:
        arguments, types = test.args[:1], test.args[1]
    else:
        return None
    parts = types.elts if isinstance(types, (ast.Tuple, ast.List, ast.Set)) else [types]
    found = [model.value(part) for part in parts]
    if len(arguments) != 1 or not all(isinstance(each, (Name, Class)) for each in found):
        return None
    return arguments[0] if (Name("torch.Tensor") in found) is not outcome else None


_IS = (ast.Eq, ast.Is, ast.In)
_IS_NOT = (ast.NotEq, ast.IsNot, ast.NotIn)


def _root(node: ast.expr) -> str:
    """The attribute that an expression reads: `self.mask` of `self.mask.size(0)`; "" for anything else."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return ast.unparse(node)
        node = node.func if isinstance(node, ast.Call) else node.value
    return ""


def _keeps(store: tuple[ast.expr, ast.expr], kept: ast.expr, given: ast.expr) -> bool:
    """True if a store makes both sides of a comparison equal, or makes the object anew whose property is compared."""
    target, value = map(ast.unparse, store)
    if target == ast.unparse(kept):
        return value == ast.unparse(given) or isinstance(store[1], ast.Name)
    return target == _root(kept)


def _stores(model: Inferred, block: Sequence[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The attributes that a block sets, and those that the methods of the project set that it calls; with values."""
    for node in (inner for part in block for inner in walk(part)):
        if isinstance(node, ast.Call) and isinstance(callee := model.value(node.func), Function):
            module = model.view.loaded(callee.module)
            info = None if module is None else module.function(callee.line, callee.column)
            inside: Iterator[ast.AST] = iter(()) if info is None else iter(own_nodes(info.node))
        else:
            inside = iter((node,))
        for each in inside:
            if isinstance(each, ast.Assign):
                yield from ((target, each.value) for target in each.targets)


def _is_property(model: Inferred, node: ast.expr) -> bool:
    """True if an expression is a size, dtype or device, or a name that was bound to one."""
    bound = [each.value for each in model.symbols.variable(node).bindings] if isinstance(node, ast.Name) else [node]
    return bool(bound) and all(value is not None and _names_property(value) for value in bound)


def _names_property(node: ast.expr) -> bool:
    parts = (each for each in walk(node) if isinstance(each, (ast.Attribute, ast.Call)))
    return any(last_name(each) in _PROPERTIES for each in parts)

"""Branches for the case that there is nothing to work on: `if len(boxes) == 0:`, `if not num_boxes:`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.semantics.structure import last_name
from perflint.semantics.values import Value

Bound = Callable[[ast.Name], list[ast.expr]]
"""The expressions that a name is assigned in its function."""


def finds_nothing(test: ast.expr, outcome: bool, bound: Bound) -> bool:
    """True if a test that comes out as `outcome` says that there are no elements: `len(x) == 0`, `not x.numel()`.

    A mask without a true element counts, too: `not mask.any()`, or `count == 0` after `count = mask.sum()`.
    """
    counted = _nothing(test, outcome)
    numbers = bound(counted) if isinstance(counted, ast.Name) else [counted]
    return bool(numbers) and all(
        number is not None and (_counts_elements(number) or _counts_true(number)) for number in numbers
    )


def is_for_nothing(test: ast.expr, outcome: bool, bound: Bound) -> bool:
    """True if a branch is for tensors and lists without elements, by their number or a name for it.

    The number must be that of tensors or of local names: settings may be empty in all runs.
    """
    counted = _nothing(test, outcome)
    if isinstance(counted, ast.Name):
        # The branch itself may set another number.
        numbers = [number for number in bound(counted) if getattr(number, "lineno", 0) <= test.lineno]
        return bool(numbers) and all(_counts_data(number, bound) for number in numbers)
    return counted is not None and _counts_data(counted, bound)


def is_for_single(test: ast.expr, outcome: bool, values: Callable[[ast.expr], Value]) -> bool:
    """True if a branch is for a list of one element at most: `if len(losses) < 2:`.

    Not so for tensors: a batch of one is frequent, and so is a tensor of one number.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_for_single(test.operand, not outcome, values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Call):
        return False
    limit = test.comparators[0]
    few = {ast.LtE: 1, ast.Lt: 2} if outcome else {ast.Gt: 1, ast.GtE: 2}
    if not isinstance(limit, ast.Constant) or few.get(type(test.ops[0])) != limit.value:
        return False
    counted = test.left.args
    return last_name(test.left) == "len" and len(counted) == 1 and values(counted[0]).tensor is None


def _nothing(test: ast.expr, outcome: bool) -> ast.expr | None:
    """The number or mask that a test finds to be 0 or empty if it comes out as `outcome`, or None."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _nothing(test.operand, not outcome)
    if not isinstance(test, ast.Compare):
        return None if outcome else _unconverted(test)
    limit = test.comparators[0]
    if len(test.ops) != 1 or not isinstance(limit, ast.Constant):
        return None
    empty = {ast.Eq: 0, ast.LtE: 0, ast.Lt: 1, ast.NotEq: 0, ast.Gt: 0, ast.GtE: 1}
    says_so = isinstance(test.ops[0], (ast.Eq, ast.LtE, ast.Lt))
    return _unconverted(test.left) if empty.get(type(test.ops[0])) == limit.value and says_so is outcome else None


def _unconverted(node: ast.expr) -> ast.expr:
    """`mask.any()` of `bool(mask.any())`, `x.sum()` of `int(x.sum().item())`."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in ("bool", "int") and len(node.args) == 1:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
            node = node.func.value
        else:
            break
    return node


def _counts_elements(node: ast.expr) -> bool:
    """`len(x)`, `x.numel()`, `x.shape[0]`, `x.size(0)`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Call) and last_name(node) == "size":
        return len(node.args) == 1
    return isinstance(node, ast.Call) and last_name(node) in ("len", "numel", "nelement")


def _counts_true(node: ast.expr) -> bool:
    """Of a mask, `x.sum()`, `x.any()` and `x.count_nonzero()`."""
    return isinstance(node, ast.Call) and last_name(node) in ("sum", "any", "count_nonzero")


def _counts_data(node: ast.expr, bound: Bound) -> bool:
    """True if a number counts elements of a tensor, or of something that a local name holds.

    Settings and the state of an object do not count: they may be empty in each step.
    """
    if not _counts_elements(node):
        return False
    if isinstance(node, ast.Call) and last_name(node) == "len" and isinstance(node.func, ast.Name):
        held = node.args[0] if len(node.args) == 1 else None
        names = [held, *(bound(held) if isinstance(held, ast.Name) else ())]
        return isinstance(held, (ast.Name, ast.Subscript)) and not any(map(_is_of_object, names))
    return True


def _is_of_object(node: ast.expr | None) -> bool:
    """`self.state[p]`, `args.gpus`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Attribute)

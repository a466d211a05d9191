"""Tensors that have at least one dimension, whatever their number of dimensions is.

`x.sum(1)` and `x[:, 0]` raise an error unless `x` has two dimensions or more, so each has at least one. Tensors without
dimensions take the dimensions 0 and -1: `x.cumsum(0)` and `x.sum(0, keepdim=True)` show nothing.
"""

from __future__ import annotations

import ast

from perflint.rules._memory.bodies import memory_around
from perflint.rules._memory.flows import flow_around
from perflint.rules._operators import operators
from perflint.rules._statements import always_runs, block_of
from perflint.semantics.around import statement_of
from perflint.semantics.dataflow.flow import Bound, Use
from perflint.semantics.facts import torch_api
from perflint.semantics.model import Model
from perflint.semantics.structure import keyword
from perflint.semantics.values import Const, Evidence, Kind, Tensor, scalar_type

_DEPTH = 6
COMPARES = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ELEMENTWISE = operators("dimensions", "elementwise")
"""Functions whose result has as many dimensions as the operand with the most."""
_REDUCES = operators("dimensions", "reduces")
"""Functions whose result lacks the dimension that the argument `dim` names."""
_KEEPS = frozenset("topk sort argsort cumsum cumprod softmax log_softmax flip".split())
"""Functions whose results have as many dimensions as their first operand, which has the dimension `dim`."""
_ADDS = operators("dimensions", "adds")
"""Functions whose result has a dimension in any case."""
_SHAPES = frozenset("view reshape repeat tile expand permute".split())
"""Functions whose result has as many dimensions as they are passed numbers, or more."""


def has_dimensions(model: Model, node: ast.expr) -> bool:
    """True if an expression is certainly a tensor with at least one dimension."""
    return _least(model, node, 1, _DEPTH)


def _least(model: Model, node: ast.expr, count: int, depth: int) -> bool:
    """True if a tensor certainly has at least `count` dimensions."""
    tensor = model.value(node)
    if isinstance(tensor, Tensor) and tensor.rank is not None:
        return tensor.rank >= count
    if depth == 0:
        return False
    if isinstance(node, ast.Name):
        if memory_around(model, node).is_reshaped(node):
            return False
        bound = flow_around(model, node).used.get(node)
        return _is_bound(model, bound, count, depth - 1, frozenset()) or _is_shown(model, node, bound, count)
    if isinstance(node, ast.Compare):
        return (
            isinstance(node.ops[0], COMPARES)
            and len(node.ops) == 1
            and _any_of(model, [node.left, *node.comparators], count, depth - 1)
        )
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.MatMult) and _any_of(model, [node.left, node.right], count, depth - 1)
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not) and _least(model, node.operand, count, depth - 1)
    if isinstance(node, ast.Subscript):
        return _is_indexed(model, node, count, depth - 1)
    return isinstance(node, ast.Call) and _is_called(model, node, count, depth - 1)


def _any_of(model: Model, nodes: list[ast.expr], count: int, depth: int) -> bool:
    return any(_least(model, each, count, depth) for each in nodes)


def _is_bound(model: Model, bound: Bound | None, count: int, depth: int, seen: frozenset[Bound]) -> bool:
    """True if all values that a name may have are such tensors."""
    if bound is None or bound in seen or len(seen) > _DEPTH:
        return False
    if bound.of:
        return all(_is_bound(model, each, count, depth, seen | {bound}) for each in bound.of)
    if bound.node is None or bound.value is None:
        return False
    if isinstance(bound.value, ast.Constant) and bound.value.value is None:
        # Where a tensor is used, the name is not None.
        return True
    statement = model.parent(bound.node)
    if isinstance(statement, ast.Tuple):
        statement = model.parent(statement)
    if not isinstance(statement, ast.Assign):
        return False
    if bound.whole:
        return _least(model, bound.value, count, depth)
    # `values, positions = x.min(dim=1)`
    value = bound.value
    return isinstance(value, ast.Call) and _is_pair(model, value) and _is_called(model, value, count, depth)


def _is_pair(model: Model, call: ast.Call) -> bool:
    owner, _, name = torch_api.canonical(model.target(call)).rpartition(".")
    return owner in ("torch", "torch.Tensor") and name in _PAIRS


_PAIRS = frozenset("min max median mode kthvalue topk sort".split())


def _is_indexed(model: Model, node: ast.Subscript, count: int, depth: int) -> bool:
    """True for `x[a:b]`, `x[:, 0]`, `x[None]`: the parts between the brackets show the dimensions."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if not isinstance(model.value(node.value), Tensor):
        return False
    if count == 1 and any(_is_selection(model, each, depth) for each in parts):
        return True
    slices = sum(isinstance(each, ast.Slice) for each in parts)
    new = sum(isinstance(each, ast.Constant) and each.value is None for each in parts)
    if slices + new >= count:
        return True
    plain = all(isinstance(each, (ast.Slice, ast.Constant)) or _is_number(model, each) for each in parts)
    return plain and _least(model, node.value, count + len(parts) - slices - 2 * new, depth)


def _is_selection(model: Model, index: ast.expr, depth: int) -> bool:
    """True for a mask, which makes one dimension of all that it covers, and for positions with dimensions."""
    tensor = model.value(index)
    if not isinstance(tensor, Tensor) or tensor.evidence < Evidence.ANNOTATION:
        return False
    return tensor.kind is Kind.BOOL or (tensor.kind is Kind.INT and _least(model, index, 1, depth - 1))


def _is_number(model: Model, node: ast.expr) -> bool:
    return scalar_type(model.value(node)) == "int"


def _is_called(model: Model, call: ast.Call, count: int, depth: int) -> bool:
    owner, _, name = torch_api.canonical(model.target(call)).rpartition(".")
    if owner not in ("torch", "torch.Tensor") or any(isinstance(each, ast.Starred) for each in call.args):
        return False
    operands = list(call.args)
    if owner == "torch.Tensor" and isinstance(call.func, ast.Attribute):
        operands.insert(0, call.func.value)
    if not operands or any(item.arg in (None, "out") for item in call.keywords):
        return False
    if name in _ELEMENTWISE:
        kept = operands[:1] if name in ("cuda", "to", "type_as") or name.endswith("_like") else operands
        return _any_of(model, kept, count, depth)
    if name in _ADDS:
        return count == 1
    if name in _SHAPES:
        sizes = operands[1].elts if len(operands) == 2 and isinstance(operands[1], ast.Tuple) else operands[1:]
        return len(sizes) >= count and all(_is_number(model, each) for each in sizes)
    given = keyword(call, "dim") or (operands[1] if len(operands) > 1 and name not in ("topk", "kthvalue") else None)
    axes = _axes(model, given)
    needed = max(map(_needs, axes), default=0)
    if name in _REDUCES and axes:
        keeps = keyword(call, "keepdim")
        removed = 0 if keeps is not None and model.value(keeps) == Const(True) else len(axes)
        return needed - removed >= count or _least(model, operands[0], count + removed, depth)
    return name in _KEEPS and (needed >= count or _least(model, operands[0], count, depth))


def _axes(model: Model, node: ast.expr | None) -> list[int]:
    """The dimensions that an argument names; empty if one is unknown."""
    parts = [] if node is None else node.elts if isinstance(node, ast.Tuple) else [node]
    found = [value.value for each in parts if isinstance(value := model.value(each), Const)]
    axes = [each for each in found if type(each) is int]
    return axes if len(axes) == len(parts) else []


def _needs(axis: int) -> int:
    """The least number of dimensions of a tensor that has a dimension; 0 if a tensor without dimensions takes it."""
    return axis + 1 if axis > 0 else -axis if axis < -1 else 0


def _is_shown(model: Model, name: ast.Name, bound: Bound | None, count: int) -> bool:
    """True if code before a name would have raised an error if the tensor had fewer dimensions."""
    uses = [] if bound is None else bound.uses
    return any(_shown_by(model, use) >= count and _comes_first(model, use, name) for use in uses)


def _shown_by(model: Model, use: Use) -> int:
    """The least number of dimensions that a tensor has after a use: `b, n = x.shape`, `x.size(0)`, `x[:, 0]`."""
    outer = model.parent(use)
    if isinstance(outer, ast.Call) and model.target(outer) == "builtins.len":
        return 1
    if isinstance(outer, ast.Subscript) and outer.value is use:
        parts = outer.slice.elts if isinstance(outer.slice, ast.Tuple) else [outer.slice]
        return sum(isinstance(each, ast.Slice) or type(getattr(each, "value", None)) is int for each in parts)
    if not isinstance(outer, ast.Attribute) or outer.attr not in ("shape", "size"):
        return 0
    asked = model.parent(outer)
    if isinstance(asked, ast.Assign) and asked.value is outer:
        (target, *others) = asked.targets
        names = target.elts if isinstance(target, ast.Tuple) and not others else []
        return 0 if any(isinstance(each, ast.Starred) for each in names) else len(names)
    axis: ast.expr | None = None
    if outer.attr == "shape" and isinstance(asked, ast.Subscript) and asked.value is outer:
        axis = asked.slice
    elif outer.attr == "size" and isinstance(asked, ast.Call) and len(asked.args) == 1:
        axis = asked.args[0]
    return max((each + 1 if each >= 0 else -each for each in _axes(model, axis)), default=0)


def _comes_first(model: Model, use: Use, name: ast.Name) -> bool:
    """True if the statement of a use runs before that of a name, whenever that one runs."""
    statement = statement_of(model, use)
    if statement is None or not always_runs(model, use, statement):
        return False
    block = block_of(model, statement)
    around = next((each for each in model.ancestors(name) if each in block), None)
    return isinstance(around, ast.stmt) and block.index(statement) < block.index(around)

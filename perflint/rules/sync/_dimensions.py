"""Tensors that have at least one dimension, whatever their number of dimensions is.

`x.sum(1)` and `x[:, 0]` raise an error unless `x` has two dimensions or more, so each has at least one.
"""

from __future__ import annotations

import ast

from perflint.rules._memory.bodies import memory_around
from perflint.rules._memory.flows import flow_around
from perflint.semantics.dataflow.scope_flow import Bound
from perflint.semantics.facts import torch_api
from perflint.semantics.model import Model
from perflint.semantics.structure import keyword
from perflint.semantics.values import Const, Sequence, Tensor, scalar_type

_DEPTH = 6
_COMPARES = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ELEMENTWISE = frozenset(
    """abs neg float double half bfloat16 int long bool detach clone contiguous eq ne lt le gt ge less less_equal
    greater greater_equal not_equal isnan isinf isfinite logical_and logical_or logical_not logical_xor exp log sqrt
    square pow
    add sub mul div clamp clip sigmoid relu minimum maximum round floor ceil remainder fmod where cuda to type_as
    zeros_like ones_like full_like empty_like rand_like randn_like""".split()
)
"""Functions whose result has as many dimensions as the operand with the most."""
_REDUCES = frozenset(
    """sum mean prod any all amin amax min max argmin argmax median nanmedian nansum nanmean logsumexp std var
    count_nonzero kthvalue mode""".split()
)
"""Functions whose result lacks the dimension that the argument `dim` names."""
_KEEPS = frozenset("topk sort argsort cumsum cumprod softmax log_softmax flip".split())
"""Functions whose results have as many dimensions as their first operand, which has the dimension `dim`."""
_ADDS = frozenset("unsqueeze stack cat concat hstack vstack nonzero argwhere flatten ravel bincount unfold".split())
"""Functions whose result has a dimension in any case."""


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
        return _is_bound(model, flow_around(model, node).used.get(node), count, depth - 1, frozenset())
    if isinstance(node, ast.Compare):
        return (
            isinstance(node.ops[0], _COMPARES)
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
    slices = sum(isinstance(each, ast.Slice) for each in parts)
    new = sum(isinstance(each, ast.Constant) and each.value is None for each in parts)
    if slices + new >= count:
        return True
    plain = all(isinstance(each, (ast.Slice, ast.Constant)) or _is_number(model, each) for each in parts)
    return plain and _least(model, node.value, count + len(parts) - slices - 2 * new, depth)


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
    given = keyword(call, "dim") or (operands[1] if len(operands) > 1 and name not in ("topk", "kthvalue") else None)
    along = _axis(model, given)
    if name in _REDUCES:
        keeps = keyword(call, "keepdim")
        if keeps is not None and model.value(keeps) == Const(True):
            return (along is not None and along >= count - 1) or _least(model, operands[0], count, depth)
        if given is None or isinstance(model.value(given), (Tensor, Sequence)) or along is None:
            return False
        return along >= count or _least(model, operands[0], count + 1, depth)
    if name in _KEEPS:
        return (along is not None and along >= count - 1) or _least(model, operands[0], count, depth)
    return False


def _axis(model: Model, node: ast.expr | None) -> int | None:
    """The dimension that an argument names; 0 for one that is counted from the end; None for anything else."""
    value = None if node is None else model.value(node)
    if not isinstance(value, Const) or type(value.value) is not int:
        return None
    return max(value.value, 0)

"""Masks that have the shape of the tensor that they index."""

from __future__ import annotations

import ast

from perflint.rules._bindings import alone
from perflint.rules._memory.flows import flow_around
from perflint.rules._memory.operators import reshapes_somewhere
from perflint.rules._memory.uses import HARMLESS, Uses
from perflint.rules._visible import is_local
from perflint.semantics.dataflow.definitions import definitions
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, path_of, walk
from perflint.semantics.values import scalar_type

_COMPARES = frozenset("eq ne lt le gt ge less less_equal greater greater_equal not_equal".split())
_TESTS = frozenset("isnan isinf isfinite isneginf isposinf logical_not".split())
_KEEPS = frozenset("abs neg float double half bfloat16 int long detach".split())
_NUMBERS = ("int", "float", "bool")
_DEPTH = 6
_MOST_USES = 80


def has_shape_of(model: Model, mask: ast.expr, indexed: ast.expr, *, so_far: bool = False) -> bool:
    """True if a mask certainly has the shape of a tensor, and nothing writes to it after it was made.

    `mask` is used where `indexed` is, as in `indexed[mask]`. With `so_far` only writes before that count: the
    store itself keeps no hold on the mask.
    """
    path = path_of(indexed)
    if not path:
        return False
    made = alone(model, mask) if isinstance(mask, ast.Name) else mask
    if made is None or (isinstance(mask, ast.Name) and not _is_only_read(model, mask, so_far)):
        return False
    return _is_new(made) and _is_elementwise(model, made, path, _DEPTH) and _keeps_shape(model, path, made, indexed)


def is_of_part(model: Model, mask: ast.expr, indexed: ast.expr) -> bool:
    """True if a mask is computed from a slice of the tensor that it indexes: it may be shorter than that tensor."""
    path = path_of(indexed)
    made = alone(model, mask) if isinstance(mask, ast.Name) else mask
    slices = (each for each in walk(made) if isinstance(each, ast.Slice)) if path and made is not None else ()
    for each in slices:
        outer = model.parent(each)
        held = model.parent(outer) if isinstance(outer, ast.Tuple) else outer
        if isinstance(held, ast.Subscript) and path_of(held.value) == path:
            return True
    return False


def _is_only_read(model: Model, mask: ast.Name, so_far: bool) -> bool:
    """True if all uses of a mask, or those up to this one, leave it as it is."""
    flow = flow_around(model, mask)
    bound = flow.used.get(mask)
    reach = None if bound is None or not is_local(model, mask) else flow.reach(bound, _MOST_USES)
    if reach is None:
        return False
    uses = Uses(model)
    for use in reach.uses:
        if not so_far or reach.loops or use.lineno <= mask.lineno:
            if isinstance(use.ctx, ast.Store):
                return False
            uses.follow(use)
    return uses.fates <= HARMLESS


def _is_new(made: ast.expr) -> bool:
    """True if a mask is not the indexed tensor itself, as `x.bool()` may be."""
    return isinstance(made, (ast.Compare, ast.BinOp, ast.UnaryOp)) or last_name(made) in _TESTS | _COMPARES


def _is_elementwise(model: Model, node: ast.expr, path: str, depth: int) -> bool:
    """True if an expression has one element for each element of the tensor with this path."""
    if depth == 0:
        return False
    if path_of(node) == path:
        return True
    parts: list[ast.expr] = []
    if isinstance(node, ast.Compare) and not isinstance(node.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot)):
        parts = [node.left, *node.comparators] if len(node.ops) == 1 else []
    elif isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        parts = [node.operand]
    elif isinstance(node, ast.Call) and not node.keywords:
        head, _, leaf = model.target(node).rpartition(".")
        operands = node.args
        if head == "torch.Tensor" and isinstance(node.func, ast.Attribute):
            operands = [node.func.value, *operands]
        known = {1: _TESTS | _KEEPS, 2: _COMPARES}.get(len(operands), frozenset())
        parts = operands if head in ("torch", "torch.Tensor") and leaf in known else []
    tensors = [part for part in parts if scalar_type(model.value(part)) not in _NUMBERS]
    return bool(tensors) and all(_is_elementwise(model, part, path, depth - 1) for part in tensors)


def _keeps_shape(model: Model, path: str, made: ast.expr, indexed: ast.expr) -> bool:
    """True if a tensor has the shape that it had where the mask was made."""
    if reshapes_somewhere(model):
        return False
    uses = [each for each in walk(made) if path_of(each) == path]
    here = definitions(model.symbols, indexed, path)
    return all(definitions(model.symbols, use, path).bindings == here.bindings for use in uses)

"""Questions about NaN and infinity."""

from __future__ import annotations

import ast

from perflint.rules._memory.flows import behind
from perflint.rules._operators import operators
from perflint.semantics.model import Model

_HOST_TESTS = frozenset(f"{owner}.{name}" for owner in ("math", "numpy") for name in ("isnan", "isinf", "isfinite"))
_TESTS = operators("checks", "nan")
_TRANSPARENT = operators("checks", "keeps_nan")


def checks_for_nan(model: Model, node: ast.expr, tensor: ast.expr) -> bool:
    """True if `node`, which reads `tensor`, asks for NaN or infinite values."""
    parent = model.parent(node)
    if isinstance(parent, ast.Call) and model.target(parent) in _HOST_TESTS:
        return True
    return _asks(model, tensor)


def _asks(model: Model, node: ast.expr) -> bool:
    node = behind(model, node)
    if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        return _asks(model, node.elt)
    if isinstance(node, ast.UnaryOp):
        return _asks(model, node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitOr, ast.BitAnd, ast.Add)):
        return _asks(model, node.left) or _asks(model, node.right)
    if isinstance(node, ast.Compare):
        return _differs_from_itself(node) or _asks(model, node.left)
    return isinstance(node, ast.Call) and _called(model, node)


def _called(model: Model, node: ast.Call) -> bool:
    target = model.target(node)
    if target in _TESTS:
        return True
    owner, _, name = target.rpartition(".")
    if name not in _TRANSPARENT or owner not in ("torch", "torch.Tensor"):
        return False
    if owner == "torch.Tensor" and isinstance(node.func, ast.Attribute):
        return _asks(model, node.func.value)
    return bool(node.args) and _asks(model, node.args[0])


def _differs_from_itself(node: ast.Compare) -> bool:
    """`x != x` holds for NaN alone."""
    return isinstance(node.ops[0], ast.NotEq) and ast.dump(node.left) == ast.dump(node.comparators[0])

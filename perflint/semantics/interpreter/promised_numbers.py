"""Functions that are annotated with a number and may return a tensor: `def accuracy(out, target) -> float`."""

from __future__ import annotations

import ast

from perflint.semantics.binders import own_nodes
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.structure import FunctionInfo
from perflint.semantics.values import Evidence, Scalar, Tensor, Value

_OF_NUMBERS = frozenset("bool float int len str round isinstance issubclass hasattr callable id hash ord".split())
"""Functions that return no tensors."""
_READERS = frozenset("item tolist format join numel dim size startswith endswith exists".split())
"""Methods that return no tensors."""


def may_return_tensor(declared: Value, info: FunctionInfo, arguments: Arguments) -> bool:
    """True if a function that promises a number gets a tensor, and returns other things than plain numbers."""
    if not isinstance(declared, Scalar) or declared.type not in ("bool", "float", "int"):
        return False
    if not any(value.tensor is not None for value in arguments.values()):
        return False
    if info.returns_numbers is None:
        info.returns_numbers = all(map(_is_number, _returned(info)))
    return not info.returns_numbers


def _returned(info: FunctionInfo) -> list[ast.expr]:
    nodes = () if isinstance(info.node, ast.Lambda) else own_nodes(info.node)
    return [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]


def _is_number(node: ast.expr) -> bool:
    """True if an expression gives a number or a text whatever its names are."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id in _OF_NUMBERS
        return isinstance(node.func, ast.Attribute) and node.func.attr in _READERS
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) or _is_number(node.operand)
    if isinstance(node, ast.Compare):
        if isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            return True
        return _is_number(node.left) and all(map(_is_number, node.comparators))
    if isinstance(node, ast.BoolOp):
        return all(map(_is_number, node.values))
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.IfExp):
        return _is_number(node.body) and _is_number(node.orelse)
    return isinstance(node, (ast.Constant, ast.JoinedStr))


def returned(value: Value, declared: Value) -> Value:
    """The result of such a function: the inferred value if it is certainly a tensor, else the promised number."""
    return value if isinstance(value, Tensor) and value.evidence >= Evidence.ANNOTATION else declared

"""Numbers that expressions stand for, and those with which torch.full fills a tensor on each device.

The CPU makes infinity of a number that float16 cannot hold; on a GPU torch.full raises an error.
"""

from __future__ import annotations

import ast
import math

from perflint.semantics.model import Model
from perflint.semantics.values import Const, Value, scalar_type

_LARGEST_HALF, _LARGEST = 65504, 3.3e38
"""Numbers that float16 holds, and those that float32 and bfloat16 hold."""
_INTEGERS = frozenset("bool uint8 int8 int16 short int32 int int64 long".split())
_FLOATS = frozenset("float32 float float64 double".split())
_WIDE = _FLOATS | frozenset("bfloat16 complex64 cfloat complex128 cdouble".split())
_COMPLEX = frozenset("complex64 cfloat complex128 cdouble".split())
_REFUSED = frozenset("uint16 uint32 uint64 complex32 chalf".split())


def integer(model: Model, node: ast.expr | None) -> int | None:
    """The integer that an expression stands for; None if that is not known."""
    value = None if node is None else model.value(node)
    return value.value if isinstance(value, Const) and type(value.value) is int else None


def literal(node: ast.expr | None) -> int | None:
    """The integer that is written out, with or without a minus; None for other expressions."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = literal(node.operand)
        return None if value is None else -value
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def number(model: Model, node: ast.expr) -> Value:
    """The value of a number; also of `float("-inf")`, which the model knows as some float."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number(model, node.operand)
        return Const(-inner.value) if isinstance(inner, Const) and type(inner.value) is float else model.value(node)
    if isinstance(node, ast.Call) and model.target(node) == "builtins.float" and len(node.args) == 1:
        given = node.args[0]
        if isinstance(given, ast.Constant) and str(given.value).lower().lstrip("+-") in ("inf", "infinity", "nan"):
            return Const(float(str(given.value)))
    return model.value(node)


def can_fill(number: Value, dtype: str | None) -> bool:
    """True if `torch.full((), number, dtype=dtype)` works on a GPU if it works on the CPU, with the same bits.

    `dtype` is None if it is not given, and empty if it is not known.
    """
    return bool(number.members) and all(_can_fill(member, dtype) for member in number.members)


def _can_fill(number: Value, dtype: str | None) -> bool:
    kind = scalar_type(number)
    if dtype in _REFUSED or kind not in ("bool", "int", "float", "complex"):
        return False
    if kind == "complex":
        return dtype in _COMPLEX
    if not isinstance(number, Const):
        return dtype in _INTEGERS | _FLOATS or (dtype is None and kind != "float")
    value = number.value
    assert isinstance(value, (int, float))
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return False
    if dtype in _INTEGERS or (dtype is None and kind != "float") or not math.isfinite(value):
        return True
    return abs(value) <= (_LARGEST if dtype in _WIDE else _LARGEST_HALF)

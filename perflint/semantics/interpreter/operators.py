"""Binary operators on values."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from perflint.semantics.facts import arrays, ranks
from perflint.semantics.facts.devices import made_of, names_gpu, operand_that_meets
from perflint.semantics.lattice import join, join_devices, union
from perflint.semantics.values import (
    FLOAT,
    INT,
    NEVER,
    ON_CPU,
    STR,
    UNKNOWN,
    Array,
    Const,
    Device,
    Evidence,
    Kind,
    Scalar,
    Sequence,
    Tensor,
    Union,
    Value,
    scalar_type,
)

_LONGEST_LITERAL = 64
"""The number of elements of a list or tuple that are kept apart."""


def as_operand(value: Value) -> Value:
    """A value as an operand: something that was moved to a GPU is a tensor there, since a module is not an operand."""
    if not value.is_open or not value.members[-1].moved:  # type: ignore[attr-defined]
        return value
    *known, moved = value.members
    return union([*known, Tensor(moved.near, evidence=Evidence.CONVENTION)])  # type: ignore[attr-defined]


def binary(left: Value, op: ast.operator, right: Value) -> Value:
    """The value of a binary operation."""
    left, right = as_operand(left), as_operand(right)
    if left is NEVER or right is NEVER:
        return NEVER
    if isinstance(op, ast.Mod) and scalar_type(left) in ("str", "bytes"):
        return left if names_gpu(left) else Scalar(scalar_type(left))
    one, other = left.tensor, right.tensor
    pair = (left, right)
    if isinstance(op, ast.Add) and any(isinstance(v, Sequence) for v in pair) and not any(map(_is_array, pair)):
        # A list or tuple is only added to another one, or to an array, so the other operand is not a tensor.
        return _sequence_operation(_no_tensor(left), op, _no_tensor(right))
    if one is not None or other is not None:
        return tensor_operation(left, right, type(op))
    if isinstance(left, Union) or isinstance(right, Union):
        return union(binary(a, op, b) for a in left.members for b in right.members)
    if isinstance(left, Array) or isinstance(right, Array):
        return arrays.combined(left, right, type(op))
    if isinstance(left, Sequence) or isinstance(right, Sequence):
        return _sequence_operation(left, op, right)
    return _arithmetic(left, op, right)


def tensor_operation(left: Value, right: Value, op: type[ast.operator]) -> Value:
    """The result of an arithmetic or bitwise operation in which a tensor takes part."""
    tensors = [value.tensor for value in (left, right) if value.tensor is not None]
    kind = _promoted(left, right)
    if op is ast.Div and kind in (Kind.INT, Kind.BOOL):
        kind = Kind.FLOAT
    device, place = _where(left, right, tensors)
    result = Tensor(
        device=device,
        place=place,
        kind=kind,
        rank=ranks.product([tensor.rank for tensor in tensors]) if op is ast.MatMult else ranks.broadcast(tensors),
        evidence=max(tensor.evidence for tensor in tensors),
    )
    # A tensor that meets a number or an array stays one; two unions may have met elsewhere.
    certain = all(len(value.members) == 1 for value in (left, right) if value.tensor is not None)
    others = [value for value in (left, right) if value.tensor is None]
    if certain or (len(tensors) == 2):
        return result
    if any(isinstance(value, (Const, Scalar)) for value in others) or tensors[0].evidence >= Evidence.ANNOTATION:
        plain = union(member for value in (left, right) for member in value.members if member.tensor is None)
        numbers = [Scalar(scalar_type(member)) for member in plain.members if scalar_type(member) in ("int", "float")]
        return union([result, *numbers[:1]]) if numbers and len(tensors) == 1 else result
    return Union((result, UNKNOWN))


def _where(left: Value, right: Value, tensors: list[Tensor]) -> tuple[Device, str]:
    charge = operand_that_meets(tensors)
    assert charge is not None
    sure = [value.tensor for value in (left, right) if value.tensor is not None and len(value.members) == 1]
    if len(tensors) == 2 and len(sure) == 1 and sure[0].device is not charge.device:
        # The operand that would decide may be no tensor at all: the result is at one place or the other.
        return join_devices(sure[0].device, charge.device), ""
    return charge.device, charge.place


def _promoted(left: Value, right: Value) -> Kind:
    kinds = [_kind(left), _kind(right)]
    if Kind.FLOAT in kinds:
        return Kind.FLOAT
    if Kind.UNKNOWN in kinds:
        return Kind.UNKNOWN
    return Kind.INT if Kind.INT in kinds else Kind.BOOL


def _kind(value: Value) -> Kind:
    if value.tensor is not None:
        return value.tensor.kind
    return {"bool": Kind.BOOL, "int": Kind.INT, "float": Kind.FLOAT}.get(scalar_type(value), Kind.UNKNOWN)


def _is_array(value: Value) -> bool:
    return isinstance(value, Array)


def _no_tensor(value: Value) -> Value:
    return value if value.tensor is None else UNKNOWN


def _sequence_operation(left: Value, op: ast.operator, right: Value) -> Value:
    if isinstance(left, Sequence) and isinstance(right, Sequence):
        if left.items is not None and right.items is not None:
            items = (*left.items, *right.items)
            if len(items) <= _LONGEST_LITERAL:
                return Sequence(left.type, union(items), items)
        return Sequence(left.type, join(left.element, right.element))
    if isinstance(left, Sequence) and isinstance(op, ast.Mult):
        if left.items is not None and isinstance(right, Const) and isinstance(right.value, int):
            fits = 0 <= right.value * len(left.items) <= _LONGEST_LITERAL
            return Sequence(left.type, left.element, left.items * right.value if fits else None)
        return Sequence(left.type, left.element)
    if isinstance(right, Sequence) and isinstance(op, ast.Mult):
        return _sequence_operation(right, op, left)
    known = left if isinstance(left, Sequence) else right
    return Sequence(known.type, UNKNOWN) if isinstance(known, Sequence) else UNKNOWN


_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_LARGEST_FOLDED = 2**53


def _arithmetic(left: Value, op: ast.operator, right: Value) -> Value:
    types = (scalar_type(left), scalar_type(right))
    if isinstance(left, Const) and isinstance(right, Const):
        folded = _fold(left.value, op, right.value)
        if folded is not None:
            return folded
    if names_gpu(left):
        return left
    if types == ("str", "str") or set(types) == {"str", "int"}:
        return STR
    if not (set(types) <= {"int", "float", "bool"}):
        stays = ON_CPU in (left, right) and all(map(_is_on_cpu_or_number, (left, right)))
        return ON_CPU if stays else made_of((left, right))
    if isinstance(op, ast.Div) or "float" in types:
        return FLOAT
    return INT


def _is_on_cpu_or_number(value: Value) -> bool:
    return value == ON_CPU or scalar_type(value) in ("int", "float", "bool")


def _fold(left: object, op: ast.operator, right: object) -> Const | None:
    function = _ARITHMETIC.get(type(op))
    numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
    if function is None or not numbers:
        return None
    if max(abs(left), abs(right)) > _LARGEST_FOLDED:  # type: ignore[arg-type]
        return None
    try:
        return Const(function(left, right))
    except (ZeroDivisionError, OverflowError):
        return None

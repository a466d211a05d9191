"""Ranks: how many dimensions a tensor or array has after an operation, None if that is not known."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from perflint.semantics.facts import torch_api
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.values import (
    NONE,
    UNKNOWN,
    Array,
    Const,
    Kind,
    Scalar,
    Sequence,
    Tensor,
    Value,
    scalar_type,
)


def broadcast(tensors: Iterable[Tensor]) -> int | None:
    """The rank of an element-wise operation."""
    return widest([tensor.rank for tensor in tensors])


def widest(ranks: list[int | None]) -> int | None:
    """The rank of an element-wise operation on operands of some ranks."""
    known = [rank for rank in ranks if rank is not None]
    return max(known, default=None) if len(known) == len(ranks) else None


def product(ranks: list[int | None]) -> int | None:
    """The rank of `a @ b`: a vector's only dimension goes."""
    rank = widest(ranks)
    if rank is None or len(ranks) != 2:
        return None
    return max(rank - ranks.count(1), 0)


def nested_list(element: Value, rank: int | None) -> Value:
    """The result of `tolist` for a tensor or array with elements of a kind."""
    if rank is None:
        return Sequence("list", UNKNOWN)
    for _ in range(rank):
        element = Sequence("list", element)
    return element


def of_result(facts: torch_api.Result, arguments: Arguments, operands: list[Tensor]) -> int | None:
    """The rank of the result of a function of torch."""
    if facts.dims in ("size", "sizes", "numbers"):
        return _of_sizes(facts.dims, arguments)
    if facts.rank is not None:
        return facts.rank
    if facts.dims == "reduce":
        return reduced(operands[0].rank, arguments) if operands else None
    if not facts.shape and facts.device == "cpu-factory":
        # The size comes after other numbers: `randint(9, (2, 3))`.
        sizes = [value for value in arguments.values() if isinstance(value, Sequence)]
        return _length(sizes[-1]) if sizes else None
    if not operands or not facts.shape:
        return None
    if facts.shape == "broadcast":
        return broadcast(operands)
    first = operands[0].rank
    if first is None:
        return None
    return first if facts.shape == "same" else max(0, first + int(facts.shape))


def _of_sizes(dims: str, arguments: Arguments) -> int | None:
    """The rank of a tensor made with sizes: `zeros(3, 4)`, `zeros((3, 4))`, `zeros(x.shape)`."""
    sizes = arguments.positional or tuple(value for name, value in arguments.keywords if name == "size")
    if arguments.unpacked or (not sizes and dims != "numbers"):
        return None
    if dims == "size":
        # The value of `full` follows.
        sizes = sizes[:1]
    if len(sizes) != 1:
        # Only numbers stand beside each other.
        return max(1, len(sizes))
    if isinstance(sizes[0], Sequence) and dims != "numbers":
        return _length(sizes[0])
    return 1 if scalar_type(sizes[0]) in ("int", "float", "bool") else None


def _length(sizes: Sequence) -> int | None:
    return None if sizes.items is None else len(sizes.items)


def reduced(rank: int | None, arguments: Arguments) -> int | None:
    """The rank after a reduction over `dim` or `axis`, which other numbers may come before: `x.norm(2, 1)`."""
    positional = arguments.positional
    if rank is None or arguments.unpacked or any(scalar_type(value) == "bool" for value in positional):
        return None
    kept = arguments.keyword("keepdim") or arguments.keyword("keepdims") or Const(False)
    if kept != Const(False):
        return rank if kept == Const(True) else None
    dims = arguments.keyword("dim") or arguments.keyword("axis")
    if dims is None:
        dims = next((v for v in reversed(positional) if scalar_type(v) == "int" or isinstance(v, Sequence)), NONE)
    count = 1 if scalar_type(dims) == "int" else _length(dims) if isinstance(dims, Sequence) else None
    return max(rank - count, 0) if count else None


def indexed(receiver: Tensor | Array, index: Value, node: ast.expr) -> int | None:
    """The rank after an index of integers, slices, None, Ellipsis, lists, tensors, arrays and masks."""
    if receiver.rank is None:
        return None
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    values = index.items if isinstance(node, ast.Tuple) and isinstance(index, Sequence) else (index,)
    rank, gathered = receiver.rank, 0
    for part, value in zip(parts, values or (), strict=False):
        if isinstance(part, ast.Slice) or value == Const(...):
            continue
        if value == NONE:
            rank += 1
        elif scalar_type(value) == "int":
            rank -= 1
        elif isinstance(value, Sequence) and value.type == "list" and isinstance(value.element, (Const, Scalar)):
            rank, gathered = rank - 1, max(gathered, 1)
        elif isinstance(value, (Tensor, Array)) and value.rank is not None and value.kind is Kind.BOOL:
            rank, gathered = rank - value.rank, max(gathered, 1)
        elif isinstance(value, (Tensor, Array)) and value.rank is not None and value.kind is Kind.INT:
            rank, gathered = rank - 1, max(gathered, value.rank)
        else:
            return None
    return max(rank + gathered, 0)

"""dtype and rank of results, found by calling functions on small CPU tensors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

from torch_api import kinds, probe_overrides

DTYPES = {"float": torch.float32, "int": torch.int64, "bool": torch.bool}
RANKS = (1, 2, 3)
SIDE = 4

Table = dict[str, dict[str, str]]
Column = Mapping[tuple[str, int], torch.Tensor]
Results = Mapping[tuple[str, int], list[torch.Tensor]]


@dataclass
class Facts:
    """Facts by name, by namespace; names with nothing to say are left out."""

    dtype: Table = field(default_factory=dict)
    rank: Table = field(default_factory=dict)
    device: Table = field(default_factory=dict)


def facts(kind: Mapping[str, Mapping[str, str]]) -> Facts:
    """Probe all callables that give a tensor."""
    found = Facts()
    for namespace, names in kind.items():
        for name, its_kind in names.items():
            if its_kind.startswith("tensor") and not name.endswith("_") and namespace in kinds.NAMESPACES:
                dtype, rank = probe(namespace, name, its_kind)
                _put(found.dtype, namespace, name, dtype)
                _put(found.rank, namespace, name, rank)
    by_hand = (
        (found.dtype, probe_overrides.DTYPE),
        (found.rank, probe_overrides.RANK),
        (found.device, probe_overrides.DEVICE),
    )
    for table, hand in by_hand:
        for fact, full_names in hand.items():
            for full in full_names.split():
                namespace, _, name = full.rpartition(".")
                _put(table, namespace, name, fact)
    return found


def _put(table: Table, namespace: str, name: str, fact: str) -> None:
    names = table.setdefault(namespace, {})
    if fact:
        names[name] = fact
    else:
        names.pop(name, None)


def probe(namespace: str, name: str, kind: str) -> tuple[str, str]:
    """(dtype fact, rank fact) of a function, empty where there is no law."""
    if name in probe_overrides.SKIP or name.startswith(probe_overrides.SKIP_PREFIXES):
        return "", ""
    member = getattr(kinds.NAMESPACES[namespace], name, None)
    if member is None or isinstance(member, type):
        return "", ""
    if not callable(member):
        return ("same", "same") if kind == "tensor" else ("", "")
    for pattern in ("t", "tt", "ti", "ttt", "tii", "tit"):
        results = {key: _call(member, pattern, *key) for key in itertools.product(DTYPES, RANKS)}
        if any(results.values()):
            return _laws(member, results, pattern, kind)
    return "", ""


_REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, AssertionError, AttributeError, ArithmeticError)


def _call(
    member: Callable[..., object], pattern: str, dtype: str, rank: int, second: int | None = None
) -> list[torch.Tensor]:
    """The tensors that a call gives, none if it fails."""
    arguments: list[object] = []
    for index, letter in enumerate(pattern):
        depth = rank if index == 0 or second is None else second
        arguments.append(_sample(DTYPES[dtype], depth) if letter == "t" else 0)
    try:
        result = member(*arguments)
    except _REFUSALS:
        return []
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    tensors = [item for item in found if isinstance(item, torch.Tensor)]
    return tensors if len(tensors) == len(found) else []


def _sample(dtype: torch.dtype, rank: int) -> torch.Tensor:
    """Integers that are indices, or probabilities; positive definite as matrices."""
    ones = torch.ones((SIDE,) * rank)
    values = ones + torch.eye(SIDE) if rank > 1 else ones
    return values / 2 if dtype.is_floating_point else values.to(dtype)


def _laws(member: Callable[..., object], results: Results, pattern: str, kind: str) -> tuple[str, str]:
    count = int(kind.partition(":")[2] or 1)
    columns = [{key: found[index] for key, found in results.items() if len(found) > index} for index in range(count)]
    dtypes = [_dtype_law(column, pattern) or "unknown" for column in columns]
    ranks = {_rank_law(member, column, pattern) for column in columns}
    dtype = "" if set(dtypes) == {"unknown"} else ",".join(dtypes)
    return dtype, ranks.pop() if len(ranks) == 1 else ""


def _dtype_law(column: Column, pattern: str) -> str:
    seen = {dtype: {_kind(item) for (its_dtype, _), item in column.items() if its_dtype == dtype} for dtype in DTYPES}
    if any(len(found) > 1 for found in seen.values()):
        return ""
    law = {dtype: found.pop() for dtype, found in seen.items() if found}
    follows = "same" if pattern.count("t") == 1 else "promote"
    if len(set(law.values())) == 1:
        # What takes integers alone takes an index, so its result says nothing of data.
        return next(iter(law.values())) if len(law) > 1 or "float" in law else ""
    if all(dtype == result for dtype, result in law.items()):
        return follows
    if law == {"float": "float", "int": "int", "bool": "int"}:
        return "arith"
    return ""


def _kind(result: torch.Tensor) -> str:
    if result.dtype is torch.bool:
        return "bool"
    return "float" if result.dtype.is_floating_point or result.dtype.is_complex else "int"


def _rank_law(member: Callable[..., object], column: Column, pattern: str) -> str:
    ranks = {(rank, result.ndim) for (_, rank), result in column.items()}
    if len(ranks) < 2:
        return ""
    changes = {after - before for before, after in ranks}
    if len(changes) > 1:
        afters = {after for _, after in ranks}
        return str(afters.pop()) if len(afters) == 1 else ""
    change = changes.pop()
    if change:
        return f"{change:+d}"
    return "same" if pattern.count("t") == 1 else _broadcasts(member, pattern)


def _broadcasts(member: Callable[..., object], pattern: str) -> str:
    for dtype in DTYPES:
        first, second = _call(member, pattern, dtype, 0, 2), _call(member, pattern, dtype, 2, 1)
        if [item.ndim for item in first + second] == [2, 2]:
            return "broadcast"
    return ""

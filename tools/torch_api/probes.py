"""dtype and rank of results, found by calling functions on small CPU tensors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import torch

from torch_api import kinds, overrides, probe_overrides

DTYPES = {"float": torch.float32, "int": torch.int64, "bool": torch.bool}
RANKS = (1, 2, 3)
SIDE = 4

Table = dict[str, dict[str, str]]


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
            if its_kind == "tensor" and not name.endswith("_") and namespace in kinds.NAMESPACES:
                dtype, rank = probe(namespace, name)
                _put(found.dtype, namespace, name, dtype)
                _put(found.rank, namespace, name, rank)
    for table, hand in ((found.dtype, probe_overrides.DTYPE), (found.rank, probe_overrides.RANK), (found.device, probe_overrides.DEVICE)):
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


def probe(namespace: str, name: str) -> tuple[str, str]:
    """(dtype fact, rank fact) of a function, empty where there is no law."""
    if name in probe_overrides.SKIP or name.startswith(probe_overrides.SKIP_PREFIXES):
        return "", ""
    member = getattr(kinds.NAMESPACES[namespace], name, None)
    if not callable(member):
        return _attribute(name)
    for pattern in ("t", "tt", "ti", "ttt", "tii", "tit"):
        results = {key: _call(member, pattern, *key) for key in itertools.product(DTYPES, RANKS)}
        if any(result is not None for result in results.values()):
            return _dtype_law(results, pattern), _rank_law(member, results, pattern)
    return "", ""


def _attribute(name: str) -> tuple[str, str]:
    return ("same", "same") if name in ("T", "mT", "H", "mH", "data", "grad", "real", "imag") else ("", "")


def _call(member: Callable[..., object], pattern: str, dtype: str, rank: int, second: int | None = None) -> torch.Tensor | None:
    torch.manual_seed(0)
    arguments: list[object] = []
    for index, letter in enumerate(pattern):
        depth = rank if index == 0 or second is None else second
        arguments.append(torch.ones((SIDE,) * depth, dtype=DTYPES[dtype]) if letter == "t" else 0)
    try:
        result = member(*arguments)
    except (RuntimeError, TypeError, ValueError, IndexError, AssertionError, NotImplementedError, AttributeError, ArithmeticError):
        return None
    return result if isinstance(result, torch.Tensor) else None


def _dtype_law(results: Mapping[tuple[str, int], torch.Tensor | None], pattern: str) -> str:
    seen = {dtype: {_kind(r) for (d, _), r in results.items() if d == dtype and r is not None} for dtype in DTYPES}
    if any(len(kinds_) > 1 for kinds_ in seen.values()):
        return ""
    law = {dtype: next(iter(kinds_)) for dtype, kinds_ in seen.items() if kinds_}
    outcomes = set(law.values())
    if len(outcomes) == 1:
        return outcomes.pop() if not (len(law) == 1 and "float" not in law) else ""
    if law.get("float") == "float" and law.get("int") == "int":
        if law.get("bool", "bool") == "bool":
            return "same" if pattern.count("t") == 1 else "promote"
        return "arith" if law["bool"] == "int" else ""
    return ""


def _kind(result: torch.Tensor | None) -> str:
    assert result is not None
    if result.dtype is torch.bool:
        return "bool"
    return "float" if result.dtype.is_floating_point or result.dtype.is_complex else "int"


def _rank_law(member: Callable[..., object], results: Mapping[tuple[str, int], torch.Tensor | None], pattern: str) -> str:
    ranks = {(rank, result.ndim) for (_, rank), result in results.items() if result is not None}
    changes = {after - before for before, after in ranks}
    if len(ranks) > 1 and {after for _, after in ranks} <= {0, 1}:
        afters = {after for _, after in ranks}
        return str(afters.pop()) if len(afters) == 1 else ""
    if len(ranks) < 2 or len(changes) > 1:
        return ""
    change = changes.pop()
    if change:
        return f"{change:+d}"
    return "same" if pattern.count("t") == 1 else _broadcasts(member, pattern)


def _broadcasts(member: Callable[..., object], pattern: str) -> str:
    for dtype in DTYPES:
        first, second = _call(member, pattern, dtype, 0, 2), _call(member, pattern, dtype, 2, 1)
        if first is not None and second is not None and first.ndim == 2 == second.ndim:
            return "broadcast"
    return ""

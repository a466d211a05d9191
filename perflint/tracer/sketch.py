"""A few numbers for a tensor, which tell whether two tensors of two runs are equal, and how far they are apart.

A sketch takes no memory of the size of the tensor, draws no random number, and waits for nothing before it is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from perflint.frozen import dataclass

PROJECTIONS = 8
"""Sums of the elements with pseudorandom signs: their mean square is the square of the norm, on average."""
_CHUNK = 1 << 16
"""Elements that are looked at together, so that it takes some megabytes at most."""
_FACTOR = -7046029254386353131
"""An odd number whose multiples have well mixed bits (2**64 / the golden ratio)."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """The elements of a tensor, in few numbers."""

    size: int
    """The number of elements."""
    bits: int
    """A sum of all bits by their places: other bits give another sum, but for one in 2**64."""
    sums: tuple[float, ...]
    """The projections."""


Sketches = Mapping[str, Sketch]
"""Sketches by the names of their tensors."""


def same_bits(one: Sketches, other: Sketches) -> bool:
    """True if two states have the same tensors, bit for bit."""
    return first_other(one, other) is None


def first_other(one: Sketches, other: Sketches) -> str | None:
    """The first tensor that is not in both states bit for bit; None if all are."""
    return next((name for name in {**one, **other} if _bits(one.get(name)) != _bits(other.get(name))), None)


def norm(of: Sketches) -> float:
    """The norm of all tensors together, about."""
    return math.sqrt(sum(_square(sketch.sums) for sketch in of.values()))


def distance(one: Sketches, other: Sketches) -> float:
    """The norm of the difference, about; a tensor that one of the states lacks counts as zeros there."""
    return math.sqrt(sum(_apart(one.get(name), other.get(name)) for name in {**one, **other}))


def _bits(sketch: Sketch | None) -> tuple[int, int] | None:
    return None if sketch is None else (sketch.size, sketch.bits)


def _apart(one: Sketch | None, other: Sketch | None) -> float:
    if one is None or other is None or one.size != other.size:
        return sum(_square(sketch.sums) for sketch in (one, other) if sketch is not None)
    return 0.0 if one.bits == other.bits else _square([a - b for a, b in zip(one.sums, other.sums, strict=True)])


def _square(sums: tuple[float, ...] | list[float]) -> float:
    return sum(value * value for value in sums) / PROJECTIONS


def sketched(tensor: Any, scale: Any = None) -> Callable[[], Sketch]:
    """Begin the sketch of a tensor, divided by `scale` if there is one; the function that is returned reads it."""
    import torch

    with torch.no_grad():
        flat = _plain(tensor).reshape(-1)
        if flat.device.type not in ("cpu", "cuda"):
            flat = flat.cpu()
        size = flat.numel()
        bits = torch.zeros((), dtype=torch.int64, device=flat.device)
        sums = torch.zeros(PROJECTIONS, dtype=torch.float64, device=flat.device)
        for start in range(0, size, _CHUNK):
            part = flat[start : start + _CHUNK]
            mixed = (torch.arange(start, start + part.numel(), device=flat.device) + 1) * _FACTOR
            mixed ^= mixed >> 29
            bits += (_integers(part) * (mixed | 1)).sum()
            signs = (mixed >> torch.arange(8, 8 + PROJECTIONS, device=flat.device)[:, None]) & 1
            # Not a product of matrices: cuBLAS refuses it where the program asks for deterministic algorithms.
            sums += ((signs * 2 - 1) * part.double()).sum(1)
        if scale is not None:
            sums /= scale
    return lambda: Sketch(size, int(bits), tuple(sums.tolist()))


def _plain(tensor: Any) -> Any:
    """The elements of a tensor of any layout, as real numbers."""
    import torch

    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _integers(part: Any) -> Any:
    """The bits of some elements, as whole numbers."""
    import torch

    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return part.contiguous().view(kinds[part.element_size()]).to(torch.int64)

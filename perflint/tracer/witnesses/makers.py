"""Tensors that are made of Python's and NumPy's data: lists of arrays, and the dtype that comes to a device."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from perflint.tracer.witnesses.base import Call, Handler, Witness, shape_of, size_of

DEPTH = 3
"""How deep lists of lists are looked into."""


class Makers(Witness):
    """Watches the functions that make tensors of data."""

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        for name in ("tensor", "as_tensor", "asarray"):
            yield torch, name, self._tensor_made

    def _tensor_made(self, call: Call) -> None:
        import torch

        data = call.args[0] if call.args else call.named.get("data", call.named.get("obj"))
        if isinstance(data, torch.Tensor) or not isinstance(call.result, torch.Tensor):
            return
        size, detail = size_of(call.result), shape_of(call.result)
        if isinstance(data, (list, tuple)) and data:
            fact = "list.of-arrays" if _holds_arrays(data) else "list.of-numbers"
            self.observe(fact, call.where, bytes=size, ms=call.ms, detail=detail)
        if call.result.device.type not in ("cpu", "meta"):
            fact = "made.float64" if call.result.dtype is torch.float64 else "made.other-dtype"
            self.observe(fact, call.where, bytes=size, detail=detail)


def _holds_arrays(data: Any) -> bool:
    """True if a list holds NumPy arrays of one dimension or more, as its first element shows."""
    numpy = sys.modules.get("numpy")
    for _ in range(DEPTH):
        if not isinstance(data, (list, tuple)) or not data:
            break
        data = data[0]
    return numpy is not None and isinstance(data, numpy.ndarray) and bool(data.ndim)

"""Growth from one iteration of a loop to the next: tensors that `cat` extends, and sums that keep their graphs.

`backwards` watches whether the graphs of losses stay.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from perflint.tracer.events import Place
from perflint.tracer.witnesses.base import Call, Handler, Witness, shape_of, size_of


class Growth(Witness):
    """Watches `torch.cat` and sums of single numbers."""

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        for name in ("cat", "concat", "concatenate"):
            if hasattr(torch, name):
                yield torch, name, self._joined
        for name in ("__iadd__", "__radd__"):
            yield torch.Tensor, name, self._added

    def start(self) -> None:
        self._last: dict[Place | None, tuple[Any, Any]] = {}

    def _joined(self, call: Call) -> None:
        import torch

        tensors = call.argument(0, "tensors")
        if not isinstance(tensors, (list, tuple)) or not isinstance(call.result, torch.Tensor):
            return
        last = self._last.get(call.where.place)
        grown = next((each for each in tensors if last is not None and _is_same(last, each)), None)
        if grown is None:
            self.observe("cat.apart", call.where, bytes=size_of(call.result), detail=shape_of(call.result))
        else:
            self.observe("cat.grew", call.where, bytes=size_of(grown), detail=shape_of(grown))
        self._last[call.where.place] = weakref.ref(call.result), weakref.ref(call.result.untyped_storage())

    def _added(self, call: Call) -> None:
        import torch

        if isinstance(call.result, torch.Tensor) and call.result.numel() == 1:
            fact = "sum.without-graph" if call.result.grad_fn is None else "sum.with-graph"
            self.observe(fact, call.where)


def _is_same(last: tuple[Any, Any], tensor: Any) -> bool:
    """True if a tensor is the one that was remembered, or has its memory."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        return False
    of_tensor, of_memory = last
    return of_tensor() is tensor or (tensor.layout is torch.strided and of_memory() is tensor.untyped_storage())

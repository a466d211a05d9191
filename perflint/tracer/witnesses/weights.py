"""Casts of float32 weights to 16 bits."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from perflint.tracer.events import Place
from perflint.tracer.optimizer_steps import listen
from perflint.tracer.witnesses._writes import Writes
from perflint.tracer.witnesses.base import Call, Handler, Witness, shape_of, size_of

_METHODS = ("to", "half", "bfloat16", "type", "type_as")
_LIMIT = 20_000
"""Weights and places that are remembered."""


class Weights(Witness):
    """Watches conversions of parameters, and whether the parameter has changed since the last one."""

    def start(self) -> None:
        self._updates = 0
        self._known: dict[tuple[int, Any, Place | None], tuple[Any, object]] = {}
        self._end = listen(self._guarded(self._stepped))

    def stop(self) -> None:
        self._end()
        self._known.clear()

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        self._writes = Writes()
        yield from self._writes.calls()
        for name in _METHODS:
            yield torch.Tensor, name, self._converted

    def _stepped(self, _: Any) -> None:
        self._updates += 1

    def _converted(self, call: Call) -> None:
        import torch

        weight, cast = call.args[0], call.result
        if not isinstance(weight, torch.nn.Parameter) or weight.dtype is not torch.float32:
            return
        if getattr(cast, "dtype", None) not in (torch.float16, torch.bfloat16):
            return
        written = self._writes.state(weight)
        # Optimizers may write through functions that are not watched.
        state = written, self._updates if weight.requires_grad else 0
        key = id(weight), cast.dtype, call.where.place
        known = self._known.get(key)
        same = written is not None and known is not None and known[0]() is weight and known[1] == state
        if len(self._known) < _LIMIT or key in self._known:
            self._known[key] = weakref.ref(weight), state
        fact = "weight.cast-again" if same else "weight.cast-first"
        self.observe(fact, call.where, bytes=size_of(cast), detail=shape_of(weight))

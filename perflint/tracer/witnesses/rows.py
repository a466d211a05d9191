"""Reads and stores of parts of tensors, one by one: rows, elements and single numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perflint.tracer.witnesses.base import Call, Handler, Witness, shape_of


class Rows(Witness):
    """Watches indexing and iteration of tensors."""

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        yield torch.Tensor, "__getitem__", self._read
        yield torch.Tensor, "__setitem__", self._stored
        yield torch.Tensor, "__iter__", self._went_over

    def _read(self, call: Call) -> None:
        self._note("row.read", call)

    def _stored(self, call: Call) -> None:
        stored = call.argument(2, "value")
        self._note("number.stored" if isinstance(stored, (bool, int, float, complex)) else "row.stored", call)

    def _went_over(self, call: Call) -> None:
        self._note("row.read", call, count=int(call.args[0].shape[0]))

    def _note(self, fact: str, call: Call, count: int = 1) -> None:
        tensor = call.args[0]
        name = f"{fact}-on-cpu" if tensor.device.type == "cpu" else fact
        self.observe(name, call.where, detail=shape_of(tensor), count=count)

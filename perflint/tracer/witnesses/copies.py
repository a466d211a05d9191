"""Copies from the CPU to the GPU: whether their memory is pinned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perflint.tracer.copies import is_non_blocking, pageable_direction
from perflint.tracer.witnesses.base import Call, Handler, Witness, size_of


class Copies(Witness):
    """Watches asynchronous copies, and the pinning of tensors."""

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        yield torch.Tensor, "to", self._copied
        yield torch.Tensor, "cuda", self._copied
        yield torch.Tensor, "pin_memory", self._pinned

    def _copied(self, call: Call) -> None:
        before, after = call.args[0], call.result
        if not hasattr(after, "device") or not is_non_blocking(call.args[1:], call.named):
            return
        if pageable_direction(before, after) == "host-to-device":
            fact = "upload.pageable"
        else:
            fact = "upload.none" if before.device == after.device else "upload.pinned"
        self.observe(fact, call.where, bytes=size_of(before))

    def _pinned(self, call: Call) -> None:
        fact = "pin.same" if call.result is call.args[0] else "pin.copied"
        self.observe(fact, call.where, bytes=size_of(call.result))

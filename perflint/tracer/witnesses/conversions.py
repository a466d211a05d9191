"""Calls of `.to` and its like: whether they copied, from which device to which, and in which dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perflint.tracer.witnesses.base import Call, Handler, Witness, shape_of, size_of

_METHODS = """to cuda cpu float half bfloat16 double long int short bool char byte type type_as""".split()


class Conversions(Witness):
    """Watches conversions of tensors to devices and dtypes."""

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        for name in _METHODS:
            yield torch.Tensor, name, self._converted
        yield torch.Tensor, "tolist", self._listed

    def _converted(self, call: Call) -> None:
        import torch

        before, after = call.args[0], call.result
        if not isinstance(after, torch.Tensor):
            return
        at, to = before.device.type, after.device.type
        if after is before:
            fact = "to.same-tensor"
        else:
            fact = "to.same-device" if after.device == before.device else "to.other-device"
        size, detail = size_of(after), f"{shape_of(before)} on {at}"
        self.observe(fact, call.where, bytes=size, detail=detail)
        if at == "cpu" and to not in ("cpu", "meta"):
            fact = "arrived.float64" if after.dtype is torch.float64 else "arrived.other-dtype"
            self.observe(fact, call.where, bytes=size, detail=shape_of(after))
        elif to == "cpu" and (at != "cpu" or after is before):
            self.observe("left.cpu" if at == "cpu" else "left.device", call.where, bytes=size, detail=shape_of(after))

    def _listed(self, call: Call) -> None:
        tensor = call.args[0]
        fact = "left.cpu" if tensor.device.type == "cpu" else "left.device"
        self.observe(fact, call.where, bytes=size_of(tensor), detail=shape_of(tensor))

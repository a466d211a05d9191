"""Calls of `.to` and its like: whether they copied, and from which device to which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from perflint.tracer.witnesses.base import Call, Handler, Witness, shape_of, size_of


class Conversions(Witness):
    """Watches conversions of tensors to devices and dtypes."""

    facts: ClassVar = {
        "to.same-tensor": "the conversion returned its argument",
        "to.same-device": "the conversion copied within one device, to another dtype or layout",
        "to.other-device": "the conversion copied to another device",
    }

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        for name in ("to", "cuda", "cpu", "float", "half", "bfloat16", "double", "long", "int", "type", "type_as"):
            yield torch.Tensor, name, self._converted

    def _converted(self, call: Call) -> None:
        before, after = call.args[0], call.result
        if not hasattr(after, "device"):
            return
        if after is before:
            fact = "to.same-tensor"
        else:
            fact = "to.same-device" if after.device == before.device else "to.other-device"
        detail = f"{shape_of(before)} on {before.device.type}"
        self.observe(fact, call.where, bytes=size_of(after), detail=detail)

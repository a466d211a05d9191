"""Counts writes to tensors, also those through `.data` and `.detach()`, which leave a version as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from perflint.tracer.witnesses.base import Call, Handler

_IN_PLACE = "add_ sub_ mul_ div_ lerp_ addcmul_ addcdiv_ copy_ clamp_ zero_ fill_ normal_ uniform_".split()


class Writes:
    """The number of writes to the memory that a tensor begins with."""

    def __init__(self) -> None:
        self._at: Counter[int] = Counter()

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        """The methods that write to a tensor, for `Witness.calls`."""
        import torch

        for name in _IN_PLACE:
            yield torch.Tensor, name, self._written

    def state(self, tensor: Any) -> tuple[int, ...] | None:
        """Differs after a write to a tensor; None if that cannot be seen."""
        if tensor.is_inference():
            return None
        at = _address(tensor)
        return id(tensor), tensor._version, at, self._at[at]

    def _written(self, call: Call) -> None:
        self._at[_address(call.args[0])] += 1


def _address(tensor: Any) -> int:
    try:
        return int(tensor.data_ptr())
    except RuntimeError:
        # A tensor without memory of its own.
        return 0

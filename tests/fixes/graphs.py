"""CUDA graphs without a GPU: the operators that ran are run again, on the same memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from perflint.tracer.simulation.streams import Stream

_capturing: list[CUDAGraph] = []


class CUDAGraph(TorchDispatchMode):
    """Stands in for `torch.cuda.CUDAGraph`. Other than a real one, it also does what it records."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator and remember it."""
        result = function(*args, **(kwargs or {}))
        self._calls.append((function, args, kwargs or {}, result))
        return result

    def replay(self) -> None:
        """Do it all again, to the same tensors."""
        with torch.no_grad():
            for function, args, kwargs, result in self._calls:
                new = function(*args, **kwargs)
                if isinstance(result, torch.Tensor) and new is not result:
                    result.copy_(new)


@contextmanager
def graph(recorded: CUDAGraph, *_: object, **__: object) -> Iterator[None]:
    """Stands in for `torch.cuda.graph`."""
    _capturing.append(recorded)
    try:
        with recorded:
            yield
    finally:
        _capturing.pop()


def install() -> None:
    """Put the graphs in place for the rest of the process."""
    torch.cuda.CUDAGraph = CUDAGraph  # type: ignore[assignment, misc]
    torch.cuda.graph = graph  # type: ignore[assignment, misc]
    Stream.is_capturing = lambda stream: bool(_capturing)  # type: ignore[method-assign]

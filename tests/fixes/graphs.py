"""CUDA graphs without a GPU: the operators that ran are run again, on the same memory.

As with a real one, a capture does no work, a wait in it fails, and memory from outside must live as long as the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from perflint.tracer.simulation.streams import Stream

_WAITS = ("aten::_local_scalar_dense", "aten::nonzero", "aten::is_nonzero")
_WRITES = ("aten::native_batch_norm", "aten::cudnn_batch_norm")
"""Operators that write to their arguments without a word of it in their schema."""
_capturing: list[CUDAGraph] = []


class CUDAGraph(TorchDispatchMode):
    """Stands in for `torch.cuda.CUDAGraph`."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[tuple[Any, Any, Any, list[Any]]] = []
        self._own: dict[int, Any] = {}
        """The memory that the graph has made, by its address."""
        self._outside: dict[int, list[Any]] = {}
        """Aliases of tensors from outside, by the address of their memory."""
        self._before: list[tuple[Any, Any]] = []
        """Tensors from outside that the capture has written to, as they were."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator and remember it."""
        if function._schema.name in _WAITS:
            raise RuntimeError("operation not permitted when stream is capturing")
        kwargs = kwargs or {}
        kept = pytree.tree_map(self._kept, (args, kwargs))
        if function._schema.is_mutable or function._schema.name in _WRITES:
            for tensor in filter(torch.is_tensor, pytree.tree_leaves(kept)):
                if _address(tensor) not in self._own:
                    self._before.append((tensor, tensor.clone()))
        result = function(*args, **kwargs)
        made = [each for each in pytree.tree_leaves(result) if torch.is_tensor(each)]
        for each in made:
            if _address(each) not in self._outside:
                self._own.setdefault(_address(each), each.detach())
        inside = [each.detach() if _address(each) in self._own else None for each in made]
        self._calls.append((function, *kept, inside))
        return result

    def _kept(self, argument: Any) -> Any:
        """An argument; for a tensor an alias of it."""
        if not torch.is_tensor(argument):
            return argument
        alias = argument.detach()
        if _address(alias) not in self._own:
            self._outside.setdefault(_address(alias), []).append(alias)
        return alias

    def undo(self) -> None:
        """Take back all that was written to memory from outside."""
        for tensor, before in reversed(self._before):
            tensor.copy_(before)
        self._before.clear()

    def replay(self) -> None:
        """Do it all again, to the same tensors."""
        for aliases in self._outside.values():
            storage = aliases[0].untyped_storage()
            if torch._C._storage_Use_Count(storage._cdata) <= len(aliases):  # type: ignore[attr-defined]
                raise RuntimeError("the graph uses memory that has been freed")
        with torch.no_grad():
            for function, args, kwargs, results in self._calls:
                new = function(*args, **kwargs)
                made = [each for each in pytree.tree_leaves(new) if torch.is_tensor(each)]
                for result, each in zip(results, made, strict=True):
                    if result is not None:
                        result.copy_(each)


def _address(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


@contextmanager
def graph(recorded: CUDAGraph, *_: object, **__: object) -> Iterator[None]:
    """Stands in for `torch.cuda.graph`."""
    _capturing.append(recorded)
    random = torch.get_rng_state()
    try:
        with recorded:
            yield
    finally:
        _capturing.pop()
        with torch.no_grad():
            recorded.undo()
        torch.set_rng_state(random)


def install() -> None:
    """Put the graphs in place for the rest of the process."""
    torch.cuda.CUDAGraph = CUDAGraph  # type: ignore[assignment, misc]
    torch.cuda.graph = graph  # type: ignore[assignment, misc]
    Stream.is_capturing = lambda stream: bool(_capturing)  # type: ignore[method-assign]

"""Activation checkpointing: in which form it ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from perflint.tracer.modules import autocast_dtype, tensors
from perflint.tracer.witnesses._graphs import nodes_of
from perflint.tracer.witnesses.base import Call, Handler, Witness

SEQUENTIAL = 64
"""Calls of `checkpoint_sequential` that are looked at: to find the form takes a walk through the graph."""
_REENTRANT = "CheckpointFunctionBackward"


class Checkpoints(Witness):
    """Watches calls of `checkpoint` and `checkpoint_sequential`."""

    def start(self) -> None:
        self._sequential = 0

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        from torch.utils import checkpoint

        yield checkpoint, "checkpoint", self._ran
        yield checkpoint, "checkpoint_sequential", self._ran_in_parts

    def _ran(self, call: Call) -> None:
        roots = [result.grad_fn for result in tensors(call.result) if result.grad_fn is not None]
        self._observe(call, _parameters(call.args[:1]), roots, roots)

    def _ran_in_parts(self, call: Call) -> None:
        self._sequential += 1
        if self._sequential <= SEQUENTIAL:
            roots = [result.grad_fn for result in tensors(call.result) if result.grad_fn is not None]
            # The last part runs without a checkpoint: its graph leads to those of the others.
            self._observe(call, _parameters(call.args[:1]), roots, nodes_of(roots))

    def _observe(self, call: Call, parameters: Iterable[Any], roots: list[Any], nodes: list[Any]) -> None:
        import torch

        dtype = autocast_dtype()
        if any(type(node).__name__ == _REENTRANT for node in nodes):
            fact = "checkpoint.reentrant-autocast" if dtype else "checkpoint.reentrant"
        elif roots:
            fact = "checkpoint.other-form"
        elif torch.is_grad_enabled() and any(parameter.requires_grad for parameter in parameters):
            fact = "checkpoint.without-gradient"
        else:
            fact = "checkpoint.nothing"
        self.observe(fact, call.where, detail=dtype)


def _parameters(functions: Iterable[Any]) -> Iterator[Any]:
    """The first parameters of the modules that a checkpoint runs, as far as they are seen."""
    import torch

    for function in functions:
        owner = getattr(function, "__self__", function)
        if isinstance(owner, torch.nn.Module):
            yield from islice(owner.parameters(), 1000)

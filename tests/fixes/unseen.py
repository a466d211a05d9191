"""What scenarios do by names that no rule knows: what a rule asks of a file stays as the scenario wants it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def capture(function: Callable[[], object]) -> None:
    """Record what a function does as a CUDA graph."""
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        function()


def load(model: torch.nn.Module, state: dict[str, Any]) -> None:
    """Load a checkpoint strictly."""
    model.load_state_dict(state)


def load_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Load an optimizer's state."""
    optimizer.load_state_dict(state)


class Remembers(torch.nn.Module):
    """A layer that keeps a tensor of one call for the next."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)
        self.last: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One number for each row."""
        y = self.layer(x)
        y = y if self.last is None else y + self.last
        self.last = y
        return y

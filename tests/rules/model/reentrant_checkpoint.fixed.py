"""Checkpoints that say which form they want, and some that do not."""

import functools

import torch
import torch.utils.checkpoint
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Stack(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
            x = torch.utils.checkpoint.checkpoint(
                layer.mixed, x, mask, preserve_rng_state=False, use_reentrant=False
            )
        x = checkpoint(
            self.layers[-1],
            x,
            use_reentrant=False,
        )
        return checkpoint_sequential(self.layers, 2, x, use_reentrant=False)


# Look-alikes


def said(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    x = checkpoint(layer, x, use_reentrant=True)
    return checkpoint(layer, x, use_reentrant=False)


def passed_on(layer: nn.Module, x: torch.Tensor, **options) -> torch.Tensor:
    return checkpoint(layer, x, **options)


def by_position(layers: nn.Sequential, x: torch.Tensor) -> torch.Tensor:
    return checkpoint_sequential(layers, 2, x, False)


def by_version(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    if torch.__version__ >= "1.11":
        return checkpoint(layer, x, use_reentrant=False)
    else:
        return checkpoint(layer, x)


def bound(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    run = functools.partial(checkpoint, use_reentrant=False)
    return run(layer, x)


class Chosen(nn.Module):
    def __init__(self, layer: nn.Module, saves: bool):
        super().__init__()
        self.layer, self.run = layer, functools.partial(checkpoint, use_reentrant=False)
        self.either = checkpoint if saves else lambda layer, x: layer(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.run(self.layer, x) + self.either(self.layer, x)


class Saver:
    def checkpoint(self, model: nn.Module, path: str) -> None:
        torch.save(model.state_dict(), path)

    def run(self, model: nn.Module) -> None:
        self.checkpoint(model, "last.pt")

"""Sizes from tensors in compiled code."""

import math

import torch
from torch import nn


@torch.compile
def positions(lengths: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    longest = lengths.max()
    steps = torch.arange(longest)  # error: TPF709
    scale = math.sqrt(longest)  # error: TPF709
    return x[:longest] * scale + steps.sum()  # error: TPF709


class Splits(nn.Module):
    def forward(self, x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        size = counts.sum()
        parts = x.split(size)  # error: TPF709
        return parts[0].view(size, -1)  # error: TPF709


model = torch.compile(Splits())


# Look-alikes


def not_compiled(lengths: torch.Tensor) -> torch.Tensor:
    return torch.arange(lengths.max())


@torch.compile
def from_shapes(x: torch.Tensor, rows: int) -> torch.Tensor:
    return torch.arange(x.shape[0]) + torch.zeros(len(x)) + x.view(x.size(0), -1)[:rows].sum()


@torch.compile(fullgraph=True)
def whole(lengths: torch.Tensor) -> torch.Tensor:
    return torch.arange(lengths.max())


@torch.compiler.disable
def kept_out(lengths: torch.Tensor) -> torch.Tensor:
    return torch.arange(lengths.max())


@torch.compile
def by_comparison(lengths: torch.Tensor) -> torch.Tensor:
    return torch.arange(16)[None] < lengths[:, None]


@torch.compile
def guarded(lengths: torch.Tensor) -> torch.Tensor:
    longest = 16
    if not torch.compiler.is_compiling():
        return torch.arange(lengths.max())
    return torch.arange(longest)

"""Arguments that are changed in functions compiled as CUDA graphs."""

import torch
from torch import nn


@torch.compile(mode="reduce-overhead")
def step(cache: torch.Tensor, k: torch.Tensor, position: int) -> torch.Tensor:
    cache[:, position] = k  # error: TPF807
    return cache.sum(1)


class Update(nn.Module):
    def forward(self, x: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
        mean.mul_(0.9).add_(x.mean())  # error: TPF807
        mean.lerp_(x.mean(), 0.1)  # error: TPF807
        x += 1  # error: TPF807
        return x - mean


update = torch.compile(Update(), mode="max-autotune")


# Look-alikes


class Cached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, 128, 64))

    def forward(self, k: torch.Tensor, position: int) -> torch.Tensor:
        self.cache[:, position] = k
        return self.cache.sum(1)


cached = torch.compile(Cached(), mode="reduce-overhead")


@torch.compile
def no_graphs(cache: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    cache[:, 0] = k
    return cache.sum(1)


@torch.compile(mode="reduce-overhead")
def of_its_own(x: torch.Tensor, count: int) -> torch.Tensor:
    y = x.clone()
    y[:, 0] = 0
    y += 1
    x = x * 2
    x += 1
    count += 1
    return y + x * count


@torch.compile(mode="max-autotune-no-cudagraphs")
def tuned(x: torch.Tensor) -> torch.Tensor:
    x += 1
    return x


def eager(x: torch.Tensor) -> torch.Tensor:
    x += 1
    return x.add_(2)


@torch.compile(mode="reduce-overhead")
def reads(x: torch.Tensor, names: list[str]) -> torch.Tensor:
    return x[:, 0] + len(names)

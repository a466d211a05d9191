"""Counting in compiled code."""

import torch
from torch import nn

CALLS = 0


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.steps = 0
        self.turn = 0
        self.losses = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1  # error: TPF712
        self.turn = (self.turn + 1) % 100  # error: TPF712
        self.losses.append(x.sum())  # error: TPF712
        return self.linear(x)


model = torch.compile(Net())


@torch.compile
def counted(x: torch.Tensor) -> torch.Tensor:
    global CALLS
    CALLS += 1  # error: TPF712
    return x * 2


class Warm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.steps < 3:
            self.steps += 1  # audit: TPF712
        return x * 2


warm = torch.compile(Warm())


# Look-alikes


class Buffers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.decay = 1.0
        self.width = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        self.decay += 0.5
        self.width = x.shape[-1]
        self.last = x
        return x * self.decay


buffers = torch.compile(Buffers())


class Eager(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        return x * 2


def train(loader) -> None:
    steps = 0
    for x in loader:
        steps += 1
        counted(x)


@torch.compile
def local_count(x: torch.Tensor) -> torch.Tensor:
    steps = 0
    parts = []
    for part in x.unbind():
        steps += 1
        parts.append(part * steps)
    return torch.stack(parts)


class Guarded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling():
            self.steps += 1
        return x * 2


guarded = torch.compile(Guarded())


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.net = torch.compile(nn.Linear(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        return self.net(x)

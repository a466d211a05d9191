"""Graph breaks in loops of compiled code."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * x.sum().item()  # error: TPF705


class Stack(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
            print(x.shape)  # error: TPF705
        return x


model = torch.compile(Stack(4))


@torch.compile
def converge(x: torch.Tensor) -> torch.Tensor:
    while x.norm() > 1:  # error: TPF705
        x = x / 2
    for part in x.unbind():
        if part.sum() > 0:  # error: TPF705
            x = x + part[part > 0].sum()  # error: TPF705
    return x


@torch.compile
def listed(x: torch.Tensor) -> torch.Tensor:
    numbers = [part.sum().item() for part in x.unbind()]  # error: TPF705
    try:
        scale = x.max().item()  # error: TPF705
    except RuntimeError:
        scale = 1.0
    return x * sum(numbers) * scale


# Look-alikes


@torch.compile
def outside_of_its_loop(x: torch.Tensor) -> torch.Tensor:
    for part in x.unbind():
        x = x + part
    scale = x.max().item()
    return x * scale


def around(x: torch.Tensor) -> torch.Tensor:
    for _ in range(10):
        x = outside_of_its_loop(x)
        print(x.sum())
    return x


@torch.compile
def over_what_is_known(x: torch.Tensor, depth: int) -> torch.Tensor:
    for index in range(depth):
        if index % 2 == 0 and x.shape[0] > index:
            x = x + index
    return x


@torch.compile
def guarded(x: torch.Tensor) -> torch.Tensor:
    for part in x.unbind():
        if not torch.compiler.is_compiling():
            print(part)
        x = x + part
    return x


@torch.compile(fullgraph=True)
def whole(x: torch.Tensor) -> torch.Tensor:
    for part in x.unbind():
        x = x + part.sum().item()
    return x


def not_compiled(x: torch.Tensor) -> torch.Tensor:
    for part in x.unbind():
        x = x + part.sum().item()
    return x

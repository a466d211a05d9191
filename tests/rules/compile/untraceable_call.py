"""Calls that no graph can hold."""

import copy
import random
import time
from pathlib import Path

import torch
from torch import nn


@torch.compile
def timed(x: torch.Tensor) -> torch.Tensor:
    start = time.perf_counter()  # error: TPF708
    x = torch.tanh(x) * random.random()  # error: TPF708
    return x + (time.time() - start)  # error: TPF708


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.profile = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)  # error: TPF708
        kept = copy.deepcopy(x)  # error: TPF708
        low, high = sorted([x.sum(), x.mean()])  # error: TPF708
        head = nn.Linear(8, 8)  # error: TPF708
        if self.profile:
            torch.save(x, Path("x.pt"))  # audit: TPF708
        return head(self.linear(x)) + kept * low * high


model = torch.compile(Net())


# Look-alikes


def around(x: torch.Tensor) -> float:
    start = time.perf_counter()
    timed(x)
    return time.perf_counter() - start


@torch.compile
def traced(x: torch.Tensor) -> torch.Tensor:
    options = copy.deepcopy({"scale": 2})
    names = sorted(["b", "a"])
    return nn.ReLU()(x) * options["scale"] * random.randint(0, 3) + len(names) + torch.rand(8)


@torch.compiler.disable
def kept_out(x: torch.Tensor) -> float:
    return time.time()


@torch.compile
def guarded(x: torch.Tensor) -> torch.Tensor:
    if not torch.compiler.is_compiling():
        start = time.time()
        x = x + start
    return x * 2


def not_compiled(x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(0)
    return copy.deepcopy(x)


class Other(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.made = time.time()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


other = torch.compile(Other())


@torch.compile
def on_purpose(x: torch.Tensor) -> torch.Tensor:
    x = x * 2
    torch._dynamo.graph_break()  # error: TPF708
    return x + 1


def only_here(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return x


class Timed(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.layer = nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print(time.perf_counter())  # error: TPF708
        return self.layer(x)


class Untimed(Timed):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print(time.perf_counter())
        return self.layer(x)


stack = nn.Sequential(nn.ReLU(), *[Timed(8) for _ in range(4)]).cuda()
stack.compile()
loose = nn.Sequential(*[Untimed(8) for _ in range(4)]).cuda()

"""Reading a number of a tensor in compiled code."""

import functools

import torch
from torch import nn
from torch.nn import functional as F


@torch.compile
def normalise(x: torch.Tensor) -> torch.Tensor:
    scale = x.abs().max().item()  # error: TPF701
    return helper(x / scale)


def helper(x: torch.Tensor) -> torch.Tensor:
    return x * float(x.mean())  # error: TPF701


@functools.partial(torch.compile, mode="reduce-overhead")
def on_the_host(n: int) -> torch.Tensor:
    x = torch.arange(8)
    first = int(x[0])  # error: TPF701
    return x * first + n


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x) * self.scale.item()  # error: TPF701
        if torch.allclose(x, x.mean()):  # error: TPF701
            return x
        return self.head(x)

    def head(self, x: torch.Tensor) -> torch.Tensor:
        sizes = x.long().sum(1).tolist()  # error: TPF701
        return x[: len(sizes)]

    @torch.no_grad()
    def evaluate(self, loader) -> float:
        total = 0.0
        for x in loader:
            total += self(x.cuda()).sum().item()
        return total


def main(compiled: bool) -> None:
    model = Net().cuda()
    if compiled:
        model = torch.compile(model)
    print(model.evaluate([]))


# Look-alikes


def not_compiled(x: torch.Tensor) -> torch.Tensor:
    return x / x.abs().max().item()


@torch.compile(fullgraph=True)
def captured_as_a_symbol(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()


@torch.compile
def known_while_tracing(x: torch.Tensor) -> torch.Tensor:
    rows = int(x.shape[0]) + len(x) + x.numel()
    return x * float(rows)


@torch.compile
def guarded(x: torch.Tensor) -> torch.Tensor:
    if not torch.compiler.is_compiling():
        x = x / x.max().item()
    if torch.jit.is_scripting() or torch.jit.is_tracing():
        x = x * x.sum().item()
    return x * 2


@torch.compile
def leaves_early(x: torch.Tensor) -> torch.Tensor:
    if torch.compiler.is_compiling():
        return x * x.max()
    return x * x.max().item()


@torch.compiler.disable
def kept_out(x: torch.Tensor) -> float:
    return x.sum().item()


@torch.compile
def calls_what_is_kept_out(x: torch.Tensor) -> torch.Tensor:
    return x * kept_out(x)


@torch.compile
def fails(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] != 8:
        raise ValueError(f"eight rows are wanted, the first is {x[0].tolist()}")
    return F.relu(x)


@torch.compile(disable=True)
def switched_off(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()


class Other(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.sum().item()

"""Calling torch.compile and going on with what it was given."""

import torch
import torch as th
from torch import compile as optimise
from torch import nn


class Net(nn.Module):
    def __init__(self, compiled: bool = False) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        if compiled:
            self.compile(mode="max-autotune")

    def prepare(self) -> None:
        self.linear = torch.compile(self.linear)
        torch.compile(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def bare(model: nn.Module, loader):
    model = th.compile(model, mode="reduce-overhead")
    return [model(x) for x in loader]


def factory(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    torch.compile(mode="max-autotune")
    model = optimise(
        model,  # the whole of it
        dynamic=True,
    )
    return model(x)


def each(layers: nn.ModuleList, x: torch.Tensor) -> torch.Tensor:
    for layer in layers:
        layer.compile(dynamic=False)
    for index, layer in enumerate(layers):
        layer.compile()
    for layer in layers:
        x = layer(x)
    return x


def accelerate(model: nn.Module) -> None:
    model.eval()
    model = torch.compile(model)


# Look-alikes


def assigned(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    fast = torch.compile(model)
    return fast(x)


def returned(model: nn.Module) -> object:
    return torch.compile(model)


def passed(model: nn.Module, trainer) -> None:
    trainer.fit(torch.compile(model))


@torch.compile(mode="max-autotune")
def decorated(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@optimise
def plainly(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def in_place(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    model.compile()
    return model(x)


def put_back(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    model.head = torch.compile(model.head)
    for index, layer in enumerate(model.layers):
        model.layers[index] = torch.compile(layer)
    for name, child in model.named_children():
        child = torch.compile(child)
        setattr(model, name, child)
    return model(x)


def in_a_loop(model: nn.Module, loader) -> None:
    compiled = model
    for step, x in enumerate(loader):
        compiled(x)
        if step == 0:
            compiled = torch.compile(model)


def closed_over(model: nn.Module):
    model = torch.compile(model)

    def run(x: torch.Tensor) -> torch.Tensor:
        return model(x)

    return run


def shared(model: nn.Module) -> None:
    global STEP
    STEP = torch.compile(model)


def of_others(pattern: str, text: str) -> bool:
    import re

    re.compile(pattern)
    compile(text, "text", "exec")
    return True

"""Calls of torch.compile in each step."""

import functools

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.fast = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.compile(self.layer)(x)  # error: TPF711
        return torch.compile(lambda t: t * 2)(x)  # error: TPF711


def train(model: nn.Module, loader, optimizer) -> None:
    for x in loader:
        step = torch.compile(model, mode="reduce-overhead")  # error: TPF711
        step(x.cuda()).sum().backward()
        optimizer.step()
        model.compile()  # error: TPF711


# Look-alikes


class Made(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.compile(nn.Linear(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class Lazy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.fast = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.fast is None:
            self.fast = torch.compile(self.layer)
        return self.fast(x)


@functools.cache
def kernel(mode: str):
    return torch.compile(torch.relu, mode=mode)


def before_the_loop(model: nn.Module, loader, optimizer) -> None:
    model = torch.compile(model)
    for x in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()


def by_layer(model: nn.Module) -> None:
    for index, layer in enumerate(model.layers):
        model.layers[index] = torch.compile(layer)


class Once(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ready = False
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.ready:
            self.layer.compile()
            self.ready = True
        return self.layer(x)


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        @torch.compile  # error: TPF711
        def gate(v: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(v) * v

        @torch.compile(dynamic=True)  # error: TPF711
        def scale(v: torch.Tensor) -> torch.Tensor:
            return v * 2

        return scale(gate(self.layer(x)))


def train_nested(model: nn.Module, loader, optimizer) -> None:
    @torch.compile
    def objective(y: torch.Tensor) -> torch.Tensor:
        return y.square().mean()

    for x in loader:
        objective(model(x.cuda())).backward()
        optimizer.step()


@functools.cache
def nested_kernel(power: int):
    @torch.compile
    def raised(v: torch.Tensor) -> torch.Tensor:
        return v**power

    return raised


class Cached(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nested_kernel(2)(x)


class Decorated(nn.Module):
    @torch.compile
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def reset_each_step(model: nn.Module, loader, optimizer) -> None:
    torch.compiler.reset()
    model = torch.compile(model)
    for x in loader:
        torch._dynamo.reset()  # error: TPF711
        model(x.cuda()).mean().backward()
        optimizer.step()


@torch.no_grad()
def inside_a_context(model: nn.Module, loader) -> None:
    with torch.autocast("cuda"):
        for x in loader:
            torch.compile(model)(x.cuda())  # error: TPF711


def compared(models: list[nn.Module], x: torch.Tensor) -> list[torch.Tensor]:
    found = []
    for model in models:
        torch._dynamo.reset()
        found.append(torch.compile(model)(x))
    return found

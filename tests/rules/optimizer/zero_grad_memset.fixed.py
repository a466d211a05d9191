"""Gradients that are filled, and gradients that are dropped."""

import torch
from torch import nn
from torch.utils.data import DataLoader


def known_optimizer(model: nn.Module, loader: DataLoader) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()


def unknown_optimizer(model, loader, optimizer) -> None:
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad(False)


def of_a_module(model: nn.Module) -> None:
    model.zero_grad(
        # the default of old
    )


def of_a_module_in_one_line(model: nn.Module) -> None:
    model.zero_grad()


def by_hand(model: nn.Module, loader: DataLoader) -> None:
    for x in loader:
        for p in model.parameters():
            if p.grad is not None:
                p.grad.zero_()
        model(x).sum().backward()
        for name, parameter in model.named_parameters():
            parameter.grad.data.zero_()


class Descent(torch.optim.Optimizer):
    def zero(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                p.grad.zero_()


def dropped(model: nn.Module, loader: DataLoader, optimizer) -> None:
    for x in loader:
        optimizer.zero_grad()
        optimizer.zero_grad(set_to_none=True)
        optimizer.zero_grad(True)
        model(x).sum().backward()
        optimizer.step()


def as_the_user_says(optimizer, set_to_none: bool) -> None:
    optimizer.zero_grad(set_to_none=set_to_none)
    optimizer.zero_grad(set_to_none)


def of_one_tensor(model: nn.Module, x: torch.Tensor, steps: int) -> torch.Tensor:
    x.requires_grad_(True)
    for _ in range(steps):
        model(x).sum().backward()
        x.data.add_(x.grad.sign(), alpha=0.01)
        x.grad.zero_()
    return x


def of_a_buffer(statistics: dict[str, torch.Tensor]) -> None:
    for value in statistics.values():
        value.zero_()


def set_to_nothing(model: nn.Module) -> None:
    for p in model.parameters():
        p.grad = None


def of_some_tensors(inputs: list[torch.Tensor]) -> None:
    for each in inputs:
        each.grad.zero_()


class Fused(torch.optim.Optimizer):
    def zero_grad(self, set_to_none: bool = True) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                else:
                    p.grad.zero_()


class Halved:
    def __init__(self, params, optimizer: torch.optim.Optimizer):
        self.params, self.optimizer = params, optimizer

    def zero_grad(self) -> None:
        self.optimizer.zero_grad()
        for p in self.params:
            if p.grad is not None:
                p.grad.detach_()
                p.grad.zero_()

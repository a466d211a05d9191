"""Autograd's own calls in compiled code."""

import torch
from torch import nn


@torch.compile
def force(x: torch.Tensor) -> torch.Tensor:
    x.requires_grad_(True)  # audit: TPF706
    (gradient,) = torch.autograd.grad((x**2).sum(), x)  # audit: TPF706
    return -gradient


def train_step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    loss = model(x).sum()
    loss.backward()  # audit: TPF706
    return loss.detach()


compiled_step = torch.compile(train_step)


@torch.compile
def sets(x: torch.Tensor) -> torch.Tensor:
    y = x.detach()
    y.requires_grad = True  # audit: TPF706
    return y * 2


# Look-alikes


def eager_step(model: nn.Module, x: torch.Tensor) -> None:
    model(x).sum().backward()


@torch.compile
def reads(x: torch.Tensor) -> torch.Tensor:
    return x.detach() if x.requires_grad and x.grad is None else x * 2


@torch.compile
def functional(x: torch.Tensor) -> torch.Tensor:
    return -torch.func.grad(lambda moved: (moved**2).sum())(x)


@torch.compile
def without(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return x * 2


@torch.compiler.disable
def kept_out(x: torch.Tensor) -> None:
    x.sum().backward()


def around(x: torch.Tensor) -> torch.Tensor:
    x.requires_grad_(True)
    y = without(x)
    y.sum().backward()
    return y

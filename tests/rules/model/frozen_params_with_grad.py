"""Freezing that has no effect, and attributes that only look like it."""

import torch
from torch import nn


def freeze(model: nn.Module) -> None:
    for p in model.parameters():
        p.require_grad = False  # error: TPF308


def freeze_layer(layer: nn.Linear, x: torch.Tensor) -> None:
    layer.weight.requires_grads = False  # error: TPF308
    layer.requires_grad = False  # error: TPF308
    x.require_grad = True  # error: TPF308


def freeze_named(net):
    for name, p in net.named_parameters():
        if "head" not in name:
            p.require_grad = False  # error: TPF308


class Tuned(nn.Module):
    def __init__(self, body: nn.Sequential):
        super().__init__()
        self.body = body
        self.body.requires_grad = False  # error: TPF308
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x))


# Look-alikes


def frozen(model: nn.Module, layer: nn.Linear, x: torch.Tensor) -> None:
    for p in model.parameters():
        p.requires_grad = False
    model.requires_grad_(False)
    layer.weight.requires_grad = False
    x.requires_grad = True
    layer.bias.requires_grad_(True)


class Settings:
    def __init__(self, required_grad: bool):
        self.required_grad = required_grad


def of_an_object(settings: Settings) -> None:
    settings.required_grad = False


class Own(nn.Module):
    def __init__(self, require_gradient: bool = True):
        super().__init__()
        self.require_gradient = require_gradient
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x) if self.require_gradient else self.layer(x).detach()


def of_its_own(own: Own) -> None:
    own.require_gradient = False


def of_unknown(anything) -> None:
    anything.requires_grad = False


def a_name(require_grad: bool) -> torch.Tensor:
    require_grad = not require_grad
    return torch.zeros(3, requires_grad=require_grad)

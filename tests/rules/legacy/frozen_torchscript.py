"""Freezing by TorchScript."""

import torch
from torch import nn
from torch.jit import freeze


def prepare(model: nn.Module, x: torch.Tensor):
    scripted = torch.jit.trace(model.eval(), x)
    frozen = freeze(scripted)  # audit: TPF377
    torch.jit.run_frozen_optimizations(frozen)  # audit: TPF377
    return torch.jit.optimize_for_inference(frozen)  # audit: TPF377


# Look-alikes


def compiled(model: nn.Module):
    return torch.compile(model.eval(), mode="reduce-overhead")


def freeze_parameters(model: nn.Module) -> None:
    for parameter in model.parameters():
        parameter.requires_grad_(False)


class Backbone(nn.Module):
    def freeze(self) -> None:
        self.requires_grad_(False)


def by_method(backbone: Backbone, model) -> None:
    backbone.freeze()
    model.optimize_for_inference()


def exported(model: nn.Module, x: torch.Tensor):
    return torch.export.export(model, (x,))


def loads(path: str):
    return torch.jit.load(path)

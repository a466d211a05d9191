"""Hooks by what they read."""

import torch
from torch import nn

seen: dict[object, object] = {}


def number(module, inputs, output):
    seen[module] = output.abs().mean().item()


def copied(module, inputs, output):
    seen[module] = output.detach().cpu()


def kept(module, inputs, output):
    seen[module] = output.detach()


def watch(model: nn.Module) -> None:
    for module in model.modules():
        module.register_forward_hook(number)  # audit: TPF961
    model.register_full_backward_hook(lambda m, i, o: print(o[0].norm().item()))  # audit: TPF961


class Watched(nn.Module):
    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner
        self.inner.register_forward_hook(copied)  # audit: TPF961


def on_the_device(model: nn.Module) -> None:
    model.register_forward_hook(kept)


def removed(model: nn.Module, x: torch.Tensor) -> None:
    handle = model.register_forward_hook(copied)
    model(x)
    handle.remove()


def collected(model: nn.Module) -> list[object]:
    return [module.register_forward_hook(number) for module in model.modules()]


def changes(model: nn.Module) -> None:
    model.register_forward_pre_hook(lambda module, inputs: inputs[0].float())


def unknown(model: nn.Module, hook) -> None:
    model.register_forward_hook(hook)


def of_others(events) -> None:
    events.register_hook(number)


def train(model: nn.Module, x: torch.Tensor) -> None:
    model(x).sum().backward()

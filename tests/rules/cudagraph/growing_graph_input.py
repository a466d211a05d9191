"""Inputs of code that runs as CUDA graphs: those that grow, and those of one shape."""

import torch
from torch import nn


@torch.inference_mode()
def generate(model: nn.Module, ids: torch.Tensor, steps: int) -> torch.Tensor:
    model = torch.compile(model.cuda().eval(), mode="reduce-overhead")
    ids = ids.cuda()
    for _ in range(steps):
        logits = model(ids)[:, -1].clone()
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)  # error: TPF814
    return ids


@torch.compile(mode="max-autotune")
def step(x: torch.Tensor) -> torch.Tensor:
    return x.mean(1, keepdim=True)


def extended(x: torch.Tensor, steps: int) -> torch.Tensor:
    x = x.cuda()
    while x.shape[1] < steps:
        parts = (x, step(x).clone())
        x = torch.concat(parts, dim=1)  # error: TPF814
    return x


class Decoder:
    def __init__(self, model: nn.Module):
        self.model = torch.compile(model.cuda(), mode="reduce-overhead")

    def run(self, history: torch.Tensor, steps: int) -> torch.Tensor:
        for _ in range(steps):
            history = torch.cat((history, self.model(history)[:, -1:].clone()), 1)  # error: TPF814
        return history


# Look-alikes


def without_graphs(model: nn.Module, ids: torch.Tensor, steps: int) -> torch.Tensor:
    model = torch.compile(model.cuda())
    for _ in range(steps):
        ids = torch.cat([ids, model(ids)[:, -1:]], dim=1)
    return ids


def with_a_cache(model: nn.Module, ids: torch.Tensor, cache, steps: int) -> torch.Tensor:
    model = torch.compile(model.cuda(), mode="reduce-overhead")
    token = ids.cuda()
    for _ in range(steps):
        token = model(token, cache)[:, -1:].clone()
        ids = torch.cat([ids, token], dim=1)
    return ids


def of_one_shape(x: torch.Tensor, steps: int) -> torch.Tensor:
    for _ in range(steps):
        y = torch.cat([x, x], dim=1)
        x = step(y).clone()
    return x


def once(x: torch.Tensor) -> torch.Tensor:
    x = torch.cat([x, x], dim=1)
    return step(x)


def shifted(model: nn.Module, window: torch.Tensor, steps: int) -> torch.Tensor:
    model = torch.compile(model.cuda(), mode="reduce-overhead")
    for _ in range(steps):
        window = torch.cat([window[:, 1:], model(window).clone()], dim=1)
    return window

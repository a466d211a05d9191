"""Backward passes under autocast, and outside of it."""

import contextlib

import torch
from torch import nn


def train(model: nn.Module, loader, optimizer: torch.optim.Optimizer) -> None:
    for x in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x.cuda()).mean()
            loss.backward()  # audit: TPF360
        optimizer.step()


def scaled(model: nn.Module, x: torch.Tensor, scaler: torch.amp.GradScaler) -> None:
    with torch.amp.autocast(device_type="cuda"), torch.profiler.record_function("step"):
        scaler.scale(model(x).mean()).backward()  # audit: TPF360


@torch.autocast("cuda")
def decorated(model: nn.Module, x: torch.Tensor) -> None:
    if x.is_cuda:
        model(x).mean().backward()  # audit: TPF360


def of_old(model: nn.Module, x: torch.Tensor, criterion) -> None:
    with torch.cuda.amp.autocast():
        loss = criterion(model(x))
        loss.backward(retain_graph=True)  # audit: TPF360


# Look-alikes


def after(model: nn.Module, x: torch.Tensor) -> None:
    with torch.autocast("cuda"):
        loss = model(x).mean()
    loss.backward()


def off(model: nn.Module, x: torch.Tensor) -> None:
    with torch.autocast("cuda", enabled=False):
        model(x).mean().backward()


def off_inside(model: nn.Module, x: torch.Tensor) -> None:
    with torch.autocast("cuda"):
        loss = model(x).mean()
        with torch.autocast("cuda", enabled=False):
            loss.backward()


def by_accelerate(accelerator, model: nn.Module, x: torch.Tensor) -> None:
    with torch.autocast("cuda"):
        accelerator.backward(model(x).mean())


def penalty(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cuda"):
        (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return gradient.norm()


def in_an_inner_function(model: nn.Module, x: torch.Tensor):
    with torch.autocast("cuda"):
        loss = model(x).mean()

        def later() -> None:
            loss.backward()

    return later


def by_a_name(model: nn.Module, batches: list[torch.Tensor], amp: bool) -> None:
    context = torch.autocast("cuda", torch.bfloat16) if amp else contextlib.nullcontext()
    for x in batches:
        with context:
            loss = model(x).mean()
            loss.backward()  # audit: TPF360


def after_a_name(model: nn.Module, batches: list[torch.Tensor]) -> None:
    context = torch.autocast("cuda", torch.bfloat16)
    for x in batches:
        with context:
            loss = model(x).mean()
        loss.backward()

"""Norms of gradients, read one by one and at once."""

import torch
from torch import nn
from torch.utils.data import DataLoader


def textbook(model: nn.Module) -> float:
    total_norm = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    return total_norm


def each_step(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x in loader:
        model(x.cuda()).sum().backward()
        total = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
        optimizer.step()


def by_name(model: nn.Module, loader: DataLoader) -> None:
    for x in loader:
        model(x.cuda()).sum().backward()
        norms = {}
        for name, p in model.named_parameters():
            norms[name] = float(p.grad.data.norm())


def of_groups(optimizer: torch.optim.Optimizer) -> float:
    largest = 0.0
    for group in optimizer.param_groups:
        for p in group["params"]:
            largest = max(largest, p.grad.norm(p=1).item())
    return largest


def on_the_device(model: nn.Module) -> torch.Tensor:
    norms = []
    for p in model.parameters():
        norms.append(p.grad.norm())
    return torch.stack(norms).norm()


def clipped(model: nn.Module) -> torch.Tensor:
    return nn.utils.clip_grad_norm_(model.parameters(), 1.0)


def of_weights(model: nn.Module) -> list[int]:
    sizes = []
    for p in model.parameters():
        sizes.append(p.numel())
    return sizes


def scaled(model: nn.Module, norm: torch.Tensor) -> None:
    for p in model.parameters():
        p.grad.div_(norm)


def of_numbers(norms: list[float]) -> float:
    total = 0.0
    for norm in norms:
        total += float(norm) ** 2
    return total ** 0.5

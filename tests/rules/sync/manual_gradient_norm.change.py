"""A norm that is read part by part, and one that stays on the device."""

import torch
from torch import nn


def norm(model: nn.Module):
    total = 0.0
    for p in model.parameters():
        if p.grad is not None:
            total += p.grad.norm(2).item() ** 2
    total = total ** 0.5
    return total


def case_norm():
    model = nn.Sequential(nn.Linear(33, 5), nn.Linear(5, 2), nn.Linear(2, 2)).cuda()
    model[:2](torch.ones(4, 33, device="cuda")).square().sum().backward()
    return {"total": norm(model), "model": model}


def change_norm(total):
    """The norm is then a tensor on the GPU, and its last bits differ."""
    assert isinstance(total[0], float) and total[1].device.type == "cuda" and total[1].dim() == 0
    assert abs(total[0] - total[1].item()) < 1e-5 * total[0]
    assert total[0] != total[1].item()


def kept_of_two_models(model: nn.Module, other: nn.Module):
    total = 0.0
    for p in model.parameters():
        total += p.grad.norm(2).item() ** 2
    for p in other.parameters():
        total += p.grad.norm(2).item() ** 2
    total = total ** 0.5
    return total


def kept_where_the_last_norm_is_read(model: nn.Module):
    total = 0.0
    for p in model.parameters():
        norm = p.grad.norm(2)
        total += norm.item() ** 2
    total = total ** 0.5
    return total, norm

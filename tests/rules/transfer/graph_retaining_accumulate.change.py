"""Losses that are added up with their graphs and without."""

import torch
from torch import nn


def train(model: nn.Module, batches):
    total = 0.0
    losses = []
    for x in batches:
        loss = model(x).square().mean()
        loss.backward()
        total += loss
        losses.append(loss)
    return total, losses


def case_sum():
    model = nn.Linear(3, 2).cuda()
    total, losses = train(model, torch.randn(3, 4, 3, device="cuda"))
    return {
        "records": [total.requires_grad, *(loss.requires_grad for loss in losses)],
        "total": total.item(),
        "losses": [loss.item() for loss in losses],
        "model": model,
    }


def change_sum(records):
    """the sum no longer requires a gradient"""
    assert records[0] == [True] * 4 and records[1] == [False] * 4

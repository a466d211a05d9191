"""Optimizers with `capturable=True` and without."""

import torch
from torch import nn

from tests.fixes.unseen import capture


def trained(model: nn.Module, optimizer: torch.optim.Optimizer):
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 3, device="cuda")).square().mean().backward()
        optimizer.step()
    return optimizer


def layer():
    return nn.Linear(3, 2).cuda()


def case_capture():
    model = layer()
    optimizer = trained(model, torch.optim.Adam(model.parameters(), capturable=True))
    capture(optimizer.step)
    return {}


def change_capture(error):
    """without the argument, capturing the step in a graph fails"""
    assert error[0] is None and "Attempting CUDA graph capture of step()" in error[1]


def case_updates():
    model = layer()
    optimizer = trained(model, torch.optim.AdamW(model.parameters(), lr=0.01, capturable=True))
    return {"weight": model.weight.detach(), "step": optimizer.state_dict()["state"][0]["step"]}


def change_updates(weight, step):
    """the counters are tensors on the CPU, in checkpoints too, and updates differ in the last bits"""
    torch.testing.assert_close(*weight)
    assert step[0].device.type == "cuda" and step[1].device.type == "cpu" and step[0].item() == step[1].item()

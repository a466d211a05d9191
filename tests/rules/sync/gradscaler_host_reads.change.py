"""Optimizers that a scaler steps."""

import torch
from torch import nn
from torch.amp import GradScaler


def train(model: nn.Module, loader):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    scaler = GradScaler()
    for x in loader:
        optimizer.zero_grad()
        scaler.scale(model(x).abs().mean()).backward()
        scaler.step(optimizer)
        scaler.update()
    return scaler.state_dict()


def case_results():
    model = nn.Linear(33, 5).cuda()
    state = train(model, torch.randn(4, 7, 33, device="cuda"))
    return {"weight": model.weight.detach(), "scaler": state}


def change_results(weight):
    """the results differ in the last bits"""
    torch.testing.assert_close(*weight, rtol=1e-4, atol=1e-6)

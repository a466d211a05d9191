"""Optimizers that go over parameters one by one, and fused ones."""

import torch
from torch import nn


def trained(model: nn.Module, optimizer: torch.optim.Optimizer):
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(7, 33, device="cuda")).square().mean().backward()
        optimizer.step()
    return {"weight": model.weight.detach(), "keys": sorted(optimizer.state[model.weight])}


def case_fused():
    model = nn.Linear(33, 5).cuda()
    return trained(model, torch.optim.Adam(model.parameters(), lr=0.1, foreach=False))


def change_fused(weight):
    """Results differ in the last bits"""
    torch.testing.assert_close(*weight, rtol=1e-4, atol=1e-6)


def case_default():
    model = nn.Linear(33, 5).cuda()
    return trained(model, torch.optim.NAdam(model.parameters(), lr=0.1, foreach=False))


def change_default(weight):
    """Results differ in the last bits"""
    torch.testing.assert_close(*weight, rtol=1e-4, atol=1e-6)


def case_complex():
    weight = torch.ones(2, dtype=torch.complex64, device="cuda", requires_grad=True)
    optimizer = torch.optim.AdamW([weight], lr=0.1, foreach=False)
    weight.abs().sum().backward()
    optimizer.step()
    return {"weight": weight}


def change_complex(error):
    """the fused form raises for parameters other than floating point tensors on a supported device"""
    assert error[0] is None and "`fused=True` requires all the params to be floating point Tensors" in error[1]

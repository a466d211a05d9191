"""Gradients that are filled with zeros, and gradients that are dropped."""

import torch
from torch import nn


def case_after_it():
    model = nn.Linear(3, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(3, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    return {"gradient": model.weight.grad, "weight": model.weight.detach()}


def change_after_it(gradient):
    """`p.grad` is None after it instead of zeros"""
    assert gradient[0].count_nonzero() == 0 and gradient[1] is None


def case_unused():
    used, unused = nn.Linear(3, 2).cuda(), nn.Linear(3, 2).cuda()
    optimizer = torch.optim.AdamW([*used.parameters(), *unused.parameters()], lr=0.1, weight_decay=0.5)
    (used(torch.ones(3, device="cuda")) + unused(torch.ones(3, device="cuda"))).sum().backward()
    optimizer.step()
    optimizer.zero_grad(False)
    before = unused.weight.detach().clone()
    used(torch.ones(3, device="cuda")).sum().backward()
    optimizer.step()
    return {"moved": not torch.equal(before, unused.weight), "unused": unused.weight.detach(), "used": used.weight.detach()}


def change_unused(moved, unused):
    """optimizers skip parameters without a gradient"""
    assert moved == (True, False)


def case_each_step():
    model = nn.Linear(3, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad(set_to_none=False)
        model(torch.randn(5, 3, device="cuda")).square().mean().backward()
        optimizer.step()
    return {"weight": model.weight, "optimizer": optimizer}

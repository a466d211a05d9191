"""Freezing that is misspelled, and freezing."""

import torch
from torch import nn


class Tuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4))
        self.head = nn.Linear(4, 2)
        self.body[0].requires_grad = False
        for p in self.body[1].parameters():
            p.require_grad = False

    def forward(self, x):
        return self.head(self.body(x))


def case_step():
    model = Tuned().cuda()
    y = model(torch.ones(5, 3, device="cuda"))
    y.square().mean().backward()
    return {
        "y": y.detach(),
        "body": [value.grad is not None for value in model.body.parameters()],
        "head": [value.grad for value in model.head.parameters()],
        "keys": list(model.state_dict()),
    }


def change_step(body):
    """the parameters are then really frozen"""
    assert body == ([True] * 4, [False] * 4)


def learn(x: torch.Tensor):
    x.require_grad = True
    return x.square().sum()


def case_learns():
    x = torch.ones(3, device="cuda")
    y = learn(x)
    return {"records": y.requires_grad, "value": y.item()}


def change_learns(records):
    """(or really learn)"""
    assert records == (False, True)

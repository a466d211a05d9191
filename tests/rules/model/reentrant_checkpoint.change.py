"""The two forms of checkpoints."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Stack(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor):
        return checkpoint(self.layer, x)


def case_alike():
    x = torch.ones(2, 3, requires_grad=True)
    model = Stack(nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)))
    model(x).square().sum().backward()
    return {"model": model, "x": x}


def case_no_gradient_of_the_input():
    model = Stack(nn.Linear(3, 3))
    y = model(torch.ones(2, 3))
    if y.requires_grad:
        y.sum().backward()
    return {"learns": model.layer.weight.grad is not None, "y": y.detach()}


def change_no_gradient_of_the_input(learns):
    """parameters that got no gradient may get one"""
    assert learns == (False, True)


class Differs(nn.Module):
    def __init__(self):
        super().__init__()
        self.runs = 0

    def forward(self, x):
        self.runs += 1
        return x.sin() if self.runs == 1 else x[:1].sin().expand(3)


def case_differs():
    x = torch.ones(3, requires_grad=True)
    Stack(Differs())(x).sum().backward()
    return {"x": x}


def change_differs(error):
    """the new form raises an error if the second run of the function differs from the first, which the old one does not notice"""
    assert error[0] is None and "CheckpointError" in error[1]

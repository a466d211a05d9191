"""A function gets the model and options, and the loop around it steps the optimizer."""

from types import SimpleNamespace

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
options = SimpleNamespace(weight=0.5, power=2)
shown = []


def backward_pass(network, options, x):
    loss = (network(x) * options.weight).abs().pow(options.power).mean()
    loss.backward()
    return loss


def train(model):
    for index in range(12):
        optimizer.zero_grad()
        x = torch.rand(6, 4, device=device)
        shown.append(backward_pass(model, options, x).item())
        options.weight = 0.25 if index > 5 else 0.5
        optimizer.step()


train(model)

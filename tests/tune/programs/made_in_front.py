"""Between the clearing of gradients and the step, other code makes some that the step uses."""

import random

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []


def penalize() -> None:
    penalty = model[0].weight.square().sum() * random.random()
    penalty.backward()


random.seed(0)
for _ in range(8):
    optimizer.zero_grad()
    penalize()
    x = torch.rand(6, 4, device=device)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())

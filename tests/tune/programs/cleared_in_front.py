"""Gradients are cleared in front of what cannot be part of the graph."""

import random

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
random.seed(0)
for _ in range(8):
    optimizer.zero_grad()
    x = torch.rand(6, 4, device=device)
    x = x * random.choice([1.0, 2.0, 3.0])
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())

"""A model clears its gradients, also those that no optimizer steps, in front of what cannot be part of the graph."""

import random

import torch
from torch import nn

device = torch.device("cuda")
body = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).to(device)
other = nn.Linear(8, 1).to(device)
model = nn.Sequential(body, other)
optimizer = torch.optim.Adam(other.parameters(), lr=0.01)
shown = []
random.seed(0)
for _ in range(8):
    model.zero_grad()  # clears optimizer and others
    x = torch.rand(6, 4, device=device)
    x = x * random.choice([1.0, 2.0, 3.0])
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())

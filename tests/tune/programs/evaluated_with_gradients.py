"""The model is evaluated with gradients, and the loss is kept: its nodes belong to another stream than the steps."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
first = model(torch.ones(9, 4, device=device)).sum()
for _ in range(12):
    x = torch.rand(6, 4, device=device)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())
shown.append(first.item())

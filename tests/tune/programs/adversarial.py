"""Gradients of other code are cleared at the start of the step."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
for _ in range(8):
    penalty = model[0].weight.square().sum()
    penalty.backward()
    shown.append(penalty.item())
    x = torch.rand(6, 4, device=device)
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())

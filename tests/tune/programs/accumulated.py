"""An optimizer steps after every second backward pass."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
for index in range(12):
    x = torch.rand(6, 4, device=device)
    loss = model(x).square().mean() / 2
    loss.backward()
    if (index + 1) % 2 == 0:
        optimizer.step()
        optimizer.zero_grad()
    shown.append(loss.item())

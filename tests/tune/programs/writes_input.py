"""The step writes to a batch that is read behind it."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
batches = [torch.rand(6, 4, device=device) for _ in range(8)]
for x in batches:
    loss = model(x.mul_(2)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown.append(loss.item() + x.sum().item())

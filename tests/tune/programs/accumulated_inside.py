"""A step runs two backward passes over parts of a batch."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
for _ in range(8):
    x = torch.rand(6, 4, device=device)
    optimizer.zero_grad()
    total = torch.zeros((), device=device)
    for part in x.chunk(2):
        loss = model(part).square().mean() / 2
        loss.backward()
        total = total + loss.detach()
    optimizer.step()
    shown.append(total.item())

"""The last batch of an epoch is smaller; its shape has a graph of its own after three epochs."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
data = torch.rand(16, 4)
shown = []
for _ in range(6):
    for x in data.split(6):
        x = x.to(device)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown.append(loss.item())

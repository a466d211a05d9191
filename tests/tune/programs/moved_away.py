"""The model is on the CPU for a while, so that its parameters have other memory afterwards."""

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
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())
    if index == 5:
        for each in [*model.parameters(), *model.buffers()]:
            each.data = each.data.clone()

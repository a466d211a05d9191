"""The learning rate of an optimizer that takes no tensor is assigned: each rate has a graph of its own."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
shown = []
for epoch in range(3):
    for group in optimizer.param_groups:
        group["lr"] = 0.1 / (epoch + 1)
    for _ in range(6):
        x = torch.rand(6, 4, device=device)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown.append(loss.item())

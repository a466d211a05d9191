"""A scheduler changes the momentum, too, which is a constant of a graph."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.02, step_size_up=3, cycle_momentum=False)
shown = []
for index in range(12):
    optimizer.param_groups[0]["betas"] = (0.9 if index < 6 else 0.5, 0.999)
    x = torch.rand(6, 4, device=device)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    shown.append(loss.item())

"""A scheduler changes the learning rate of SGD, which has no form for graphs but the fused one, after each step."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)
shown = []
for _ in range(10):
    x = torch.rand(6, 4, device=device)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    assert isinstance(optimizer.param_groups[0]["lr"], float) and not optimizer.param_groups[0]["fused"]
    shown.append(loss.item())

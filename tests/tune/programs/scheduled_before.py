"""The learning rate changes between the backward pass and the step."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
shown = []
for _ in range(8):
    x = torch.rand(6, 4, device=device)
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    scheduler.step()
    optimizer.step()
    shown.append(loss.item())

"""Gradients are clipped where an exception is caught."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
for _ in range(8):
    x = torch.rand(6, 4, device=device)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    try:
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    except Exception as error:
        raise RuntimeError("no gradients") from error
    else:
        scale = 1.0
    optimizer.step()
    shown.append(loss.item() * scale)

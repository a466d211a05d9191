"""As cleared_with_others, but between the passes, so that the first one adds to gradients of an earlier step."""

import torch
from torch import nn

device = torch.device("cuda")
body = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).to(device)
other = nn.Linear(8, 1).to(device)
model = nn.Sequential(body, other)
optimizer = torch.optim.Adam(other.parameters(), lr=0.01)
shown = []
for _ in range(8):
    x = torch.rand(6, 4, device=device)
    first = model(x).mean()
    first.backward()
    model.zero_grad()  # clears optimizer and others
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())

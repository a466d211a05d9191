"""Only one of the models clears its gradients, so those of the other one add up."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)).to(device)
other = nn.Linear(4, 1).to(device)
optimizer = torch.optim.Adam([*model.parameters(), *other.parameters()], lr=0.01)
shown = []
for _ in range(8):
    x = torch.rand(6, 4, device=device)
    model.zero_grad()
    loss = other(model(x)).square().mean()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())

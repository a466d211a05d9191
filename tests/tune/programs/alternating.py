"""Two networks train against each other; one has gradients of the other's loss."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
other = nn.Linear(1, 1).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
second = torch.optim.Adam(other.parameters(), lr=0.01)
shown = []
for _ in range(8):
    x = torch.rand(6, 4, device=device)
    optimizer.zero_grad()
    made = model(x)
    loss = other(made).mean()
    loss.backward()
    optimizer.step()
    second.zero_grad()
    worse = (other(made.detach()) - other(torch.ones_like(made))).square().mean()
    worse.backward()
    second.step()
    shown.append(loss.item() + worse.item())

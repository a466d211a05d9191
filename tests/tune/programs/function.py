"""A function of the module makes one step, and evaluates."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []


def train(x):
    # `factor` is bound again by the loop of the module.
    model.train()
    optimizer.zero_grad()
    loss = model(x).square().mean() * factor
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        other = model(x).mean()
    shown.append(other.item())
    return loss.item()


for index in range(9):
    factor = torch.full((), 1.0 + index, device=device)
    shown.append(train(torch.rand(6, 4, device=device)))

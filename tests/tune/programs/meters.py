"""Meters of the program get a loss and an accuracy in front of the backward pass."""

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.values = []
        self.sum = 0
        self.count = 0

    def update(self, value, count):
        self.values.append(float(value))
        self.sum += value * count
        self.count += count


class Loss(nn.Module):
    def forward(self, output, target):
        return (output - target[:, None]).square().sum(1).mean()


device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
losses, hits, criterion = Meter(), Meter(), Loss()
for _ in range(8):
    x = torch.rand(6, 4, device=device)
    target = torch.randint(0, 2, (6,), device=device)
    output = model(x)
    loss = criterion.forward(output, target)
    losses.update(loss.item(), x.size(0))
    accuracy = (output.argmax(1) == target).float().mean()
    hits.update(accuracy, x.size(0))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown += [losses.sum, hits.values[-1], float(hits.sum)]

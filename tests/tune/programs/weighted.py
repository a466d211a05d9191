"""A weight grows in each step, and a share is drawn for each: both are tensors in the graph."""

import random

import torch
from torch import nn

device = torch.device("cuda")


def mixed(criterion, output, one, other, share):
    return share * criterion(output, one) + (1 - share) * criterion(output, other)


model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.MSELoss()
shown = []
few = random.Random(0)
for index, x in enumerate(torch.rand(12, 6, 4, device=device)):
    weight = min(1.0, (index + 1) / 20)  # moves
    share = few.betavariate(0.5, 0.5)  # moves
    inputs = share * x + (1 - share) * x.flip(0)
    output = model(inputs)
    loss = mixed(criterion, output, x, x.flip(0), share) + weight * output.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown.append([loss.item(), weight])

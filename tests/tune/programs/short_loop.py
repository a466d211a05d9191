"""A function of the module gets its model and makes few steps; another model is trained between two of its calls."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
other = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.Adam([*model.parameters(), *other.parameters()], lr=0.001)
shown = []


def same(function):
    return function


@same
def train(model, power):  # called again
    for _ in range(2):
        x = torch.rand(6, 4, device=device)
        optimizer.zero_grad()
        loss = model(x).abs().pow(power).mean()
        loss.backward()
        optimizer.step()
        shown.append(loss.item())


for index in range(9):
    train(model, 2)
    train(other, 3 if index > 6 else 2)

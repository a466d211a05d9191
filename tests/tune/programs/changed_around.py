"""A function of the step reads a number of the module, which the loop of the epochs changes."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
weight = 1.0


def loss_of(x):
    return weight * model(x).square().mean()


for _ in range(3):
    for _ in range(6):
        x = torch.rand(6, 4, device=device)
        optimizer.zero_grad()
        loss = loss_of(x)
        loss.backward()
        optimizer.step()
        shown.append(loss.item())
    weight = weight * 0.5

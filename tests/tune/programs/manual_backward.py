"""A library begins the backward pass by a method of another name, as Lightning does, and freezes the other model."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)).to(device)
other = nn.Linear(4, 1).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []


class Module:
    manual_backward = staticmethod(torch.autograd.backward)

    def __init__(self):
        self.model = model
        self.other = other

    def training_step(self, x):
        self.other.requires_grad_(False)
        loss = self.other(self.model(x)).square().mean()
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        self.other.requires_grad_(True)
        shown.append(loss.item())


module = Module()
for _ in range(10):
    module.training_step(torch.rand(6, 4, device=device))

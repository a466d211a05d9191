"""The loss has a penalty on gradients of the inputs, as in WGAN-GP."""

import torch
import torch.autograd as autograd
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []


def penalty(x):
    inputs = x.detach().requires_grad_(True)
    outputs = model(inputs)
    (slopes,) = autograd.grad(outputs, inputs, torch.ones_like(outputs), create_graph=True)
    return (slopes.norm(2, dim=1) - 1).square().mean()


for _ in range(8):
    x = torch.rand(6, 4, device=device)
    optimizer.zero_grad()
    loss = model(x).mean() + 10 * penalty(x)
    loss.backward()
    optimizer.step()
    shown.append(loss.item())

"""Code compares the gradient of a step with that of the step before."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
last = None
for _ in range(9):
    x = torch.rand(6, 4, device=device)
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    gradient = model.weight.grad.detach().view(-1)
    if last is not None:
        shown.append((gradient * last).sum().item())
    last = gradient

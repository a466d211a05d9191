"""Between the backward pass and the step, a scheduler would step if there were one."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scheduler = None
shown = []
for _ in range(8):
    x = torch.rand(6, 4, device=device)
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    if scheduler is not None:
        scheduler.step()  # not run
    optimizer.step()
    shown.append(loss.item())

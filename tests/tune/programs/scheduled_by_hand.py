"""A scheduler of torch that calls a function of the program steps between the optimizer and what clears gradients."""

import torch
from torch import nn

device = torch.device("cuda")


def factor(step):
    return 1.0 / (1 + step)


model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: factor(step))
batches, shown = torch.rand(10, 6, 4, device=device), []
for x in batches:
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
    model.zero_grad()  # clears optimizer
    shown += [loss.item(), scheduler.get_last_lr()[0]]

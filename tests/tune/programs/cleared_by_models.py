"""Two models clear their gradients themselves, one of them between the backward passes."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)).to(device)
other = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
second = torch.optim.Adam(other.parameters(), lr=0.01)
shown = []
for _ in range(8):
    x = torch.rand(6, 4, device=device)
    other.zero_grad()  # clears second
    output = other(x)
    loss = output.square().mean()
    loss.backward()
    before = output.mean().item()
    made = model(torch.rand(6, 4, device=device))
    output = other(made.detach())
    against = (output - 1).square().mean()
    against.backward()
    after = output.mean().item()
    second.step()
    model.zero_grad()  # clears optimizer
    fooled = other(made).square().mean()
    fooled.backward()
    optimizer.step()
    shown += [loss.item(), against.item(), before, after]
    shown.append(fooled.item())

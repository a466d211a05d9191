"""Losses are summed up over the epoch as tensors, and shown, between the forward pass and the backward pass."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown, words, total = [], [], 0
for index in range(8):
    x = torch.rand(6, 4, device=device)
    loss = model(x).square().mean()
    total += loss
    words.append(f"loss {float(total) / (index + 1):.3f}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())
shown.append(float(total))
shown += [float(word.split()[1]) for word in words]

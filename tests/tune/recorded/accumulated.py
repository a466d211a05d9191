"""Gradients of two batches add up before the optimizer steps, so that only the forward and backward pass is a graph."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
inputs = torch.randn(64, 32, 64, device=device)
targets = torch.randn(64, 32, device=device)
layers = [nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Tanh()) for _ in range(12)]
model = nn.Sequential(*layers, nn.Linear(64, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=device == "cuda")
for step in range(400):
    x, y = inputs[step % 64], targets[step % 64]
    loss = nn.functional.mse_loss(model(x).flatten(), y) / 2
    loss.backward()
    if step % 2 == 1:
        optimizer.step()
        optimizer.zero_grad()

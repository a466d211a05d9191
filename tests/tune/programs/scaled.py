"""A GradScaler and a fused optimizer, which skips steps on the GPU; one step is skipped."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
scaler = torch.amp.GradScaler("cuda", growth_interval=3)
shown = []
for index in range(12):
    x = torch.rand(6, 4, device=device)
    weight = torch.full((), float("inf") if index == 7 else 1.0, device=device)
    optimizer.zero_grad()
    loss = model(x).square().mean() * weight
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    shown.append(loss.item())

"""A sum over the steps grows inside of the context of the forward pass."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
for _ in range(3):
    total = 0.0
    for _ in range(4):
        x = torch.rand(6, 4, device=device)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().square().mean()
            total += loss.detach().double()
        loss.backward()
        optimizer.step()
    shown.append(float(total))

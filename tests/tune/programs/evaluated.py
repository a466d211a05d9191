"""The model is evaluated between steps, in the other mode and with another shape."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
for index in range(12):
    x = torch.rand(6, 4, device=device)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if index % 3 == 0:
        model.eval()
        with torch.no_grad():
            shown.append(model(torch.ones(9, 4, device=device)).sum().item())
        model.train()
    shown.append(loss.item())

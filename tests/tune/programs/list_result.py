"""A result of the step is a list of tensors, which is kept."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown, parts = [], []
for _ in range(8):
    x = torch.rand(6, 4, device=device)
    outputs = [model(x), model(-x)]
    loss = outputs[0].square().mean() + outputs[1].mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    parts.append(outputs)
    shown.append(loss.item())

"""Other code leaves gradients to which the step adds its own."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []


def penalise() -> None:
    penalty = model[0].weight.square().sum()
    penalty.backward()
    shown.extend([penalty.item()])


for _ in range(8):
    penalise()
    x = torch.rand(6, 4, device=device)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    shown.append(loss.item())

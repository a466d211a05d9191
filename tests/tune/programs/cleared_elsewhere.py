"""Other code clears gradients that the step adds to, which frees their memory."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
other = nn.Linear(1, 1).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []


def reset() -> None:
    other.zero_grad()


for _ in range(8):
    reset()
    x = torch.rand(6, 4, device=device)
    optimizer.zero_grad()
    loss = other(model(x)).mean()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())

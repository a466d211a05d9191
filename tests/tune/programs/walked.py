"""A model asks its parameters where it is, and its first part for a penalty."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x.to(next(self.parameters()).dtype))

    def penalty(self) -> torch.Tensor:
        layer = self.layers.children()
        layer = next(iter(layer))
        return sum(each.square().sum() for each in layer.parameters())


model = Model().to("cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
for _ in range(8):
    x = torch.rand(6, 4, device="cuda")
    loss = model(x).square().mean() + 0.01 * model.penalty()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())

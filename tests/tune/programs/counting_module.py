"""A module of a library, whose code no run of the project sees, counts its calls and keeps a sum, as a metric does."""

import torch
from torch import nn

LIBRARY = """
class Metric(nn.Module):
    def __init__(self):
        super().__init__()
        self.total = 0.0

    def forward(self, x):
        self.total = self.total + x.detach().mean()
        return self.total
"""
device = torch.device("cuda")
library = {"nn": nn, "__name__": "library"}
exec(LIBRARY, library)
metric = library["Metric"]()
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
shown = []
for _ in range(9):
    x = torch.rand(6, 4, device=device)
    optimizer.zero_grad()
    out = model(x)
    seen = metric(out)
    loss = out.square().mean()
    loss.backward()
    optimizer.step()
    shown.append(seen.item())

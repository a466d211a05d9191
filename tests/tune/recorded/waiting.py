"""The model asks for the size of what it computed, and waits for the answer: no graph can be made of its steps."""

import torch
from torch import nn


class Bounded(nn.Module):
    """Layers whose result is made smaller where it has become large."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(8)))

    def forward(self, x):
        """The results of the layers."""
        for layer in self.layers:
            x = layer(x)
            size = x.norm().item()
            if size > 30:
                x = x / size
        return x


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
inputs = torch.randn(64, 32, 64, device=device)
model = Bounded().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(200):
    x = inputs[step % 64]
    optimizer.zero_grad()
    loss = (model(x) - x).square().mean()
    loss.backward()
    optimizer.step()

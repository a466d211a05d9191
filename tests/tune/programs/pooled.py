"""A GAN whose second step gets images of a pool, which Python fills: each backward pass has a graph of its own."""

import random

import torch
from torch import nn

random.seed(0)


class Pool:
    def __init__(self) -> None:
        self.images: list[torch.Tensor] = []

    def exchange(self, images: torch.Tensor) -> torch.Tensor:
        self.images.append(images)
        return random.choice(self.images[-5:]).clone()


model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)).to("cuda")
other = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to("cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
critic_optimizer = torch.optim.Adam(other.parameters(), lr=0.01)
pool = Pool()
shown = []
for _ in range(10):
    x = torch.rand(6, 4, device="cuda")
    optimizer.zero_grad()
    made = model(x)
    loss = other(made).square().mean() + (made - x).abs().mean()
    loss.backward()
    optimizer.step()

    critic_optimizer.zero_grad()
    real = (other(x) - 1).square().mean()
    made = pool.exchange(made.detach())
    false = other(made.detach()).square().mean()
    critic = (real + false) / 2
    critic.backward()
    critic_optimizer.step()
    shown.append(loss.item())
    shown.append(critic.item())

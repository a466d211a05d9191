"""An attribute changes between two loops over a function that makes the step, whose graph outlives the first one."""

import torch
from torch import nn

device = torch.device("cuda")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line, self.scale = nn.Linear(4, 1), 1.0

    def forward(self, x):
        return self.line(x) * self.scale


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []


def train(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


for _ in range(9):
    shown.append(train(torch.rand(6, 4, device=device)).item())
model.scale = 3.0
for _ in range(9):
    shown.append(train(torch.rand(6, 4, device=device)).item())

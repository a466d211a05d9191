"""Numbers are picked on the CPU, and a function of the program calls the model, whose constructor loops."""

import torch
from torch import nn

device = torch.device("cuda")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(2):
            layer = nn.Linear(4, 4)
            layer.factor = 0.5
            self.layers.append(layer)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).tanh() * layer.factor
        return x


def weighted(net, x, t):
    return (net(x).square().mean(1) * t.to(x.device)).mean()


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = {"weighted": weighted}
batches, shown = torch.rand(8, 6, 4, device=device), []
for x in batches:
    t = torch.rand(3).to(device)
    t = torch.cat([t, 1 - t])
    loss = losses["weighted"](model, x, t)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())

"""A loss is logged every third time, in front of the backward pass, by code that perflint does not know."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []


class Writer:
    add = staticmethod(lambda name, value, number: shown.append(float(value) + number))


writer = Writer()
for index in range(10):
    x = torch.rand(6, 4, device=device)
    output = model(x)
    loss = output.square().mean()
    if index % 3 == 0:
        writer.add("loss", loss, index)
        writer.add("output", output.mean().item(), index)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
shown.append(float(loss))

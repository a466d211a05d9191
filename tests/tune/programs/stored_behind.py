"""A function behind the step changes a tensor in place and stores another one: it stays outside of the graph."""

import torch
from torch import nn

device = torch.device("cuda")


def remember(seen, model):
    with torch.no_grad():
        seen["total"].add_(model[0].weight)
        seen["last"] = model[0].weight.clone()


model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
seen, shown = {"total": torch.zeros(8, 4, device=device)}, []
for x in torch.rand(10, 6, 4, device=device):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    remember(seen, model)
    shown.append(loss.item() + seen["total"].sum().item() + seen["last"].sum().item())

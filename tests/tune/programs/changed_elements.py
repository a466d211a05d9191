"""Options in a dictionary, an object and a list, which functions change that know them by other names."""

import torch
from torch import nn

device = torch.device("cuda")


class Options:
    scale = 1.0


model = nn.Linear(4, 1).to(device)
model.register_buffer("shift", torch.zeros((), device=device))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
weights, options, terms = {"kl": 1.0}, Options(), {"l2": 0.1}


def anneal(kept, names):
    kept["kl"] *= 0.5
    for name in names:
        setattr(names[name], "scale", 0.5)  # noqa: B010
    terms.update(l2=0.2)


for _ in range(3):
    for _ in range(6):
        x = torch.rand(6, 4, device=device)
        optimizer.zero_grad()
        loss = weights["kl"] * model(x).square().mean() * options.scale + terms["l2"] * model.weight.square().sum()
        loss = loss + model.shift
        loss.backward()
        optimizer.step()
        shown.append(loss.item())
    anneal(weights, {"first": options})
    model.register_buffer("shift", model.shift + 1)

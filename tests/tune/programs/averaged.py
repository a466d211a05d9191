"""An average of the parameters is updated in the step, by a method with a name that containers have, too."""

import torch
from torch import nn

device = torch.device("cuda")


class Average:
    def __init__(self, model):
        self.held = {name: each.detach().clone() for name, each in model.named_parameters()}

    def update(self, model):
        with torch.no_grad():
            for name, each in model.named_parameters():
                self.held[name].copy_(torch.add(self.held[name] * 0.9, each, alpha=0.1))


model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
average = Average(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
batches, shown = torch.rand(10, 6, 4, device=device), []
for x in batches:
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    average.update(model)
    model.zero_grad()  # clears optimizer
    shown.append(loss.item())
shown += [each.sum().item() for each in average.held.values()]

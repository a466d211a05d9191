"""A branch that is not taken here prints, and gives the loss to code that perflint does not know."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
batches, shown = torch.rand(10, 6, 4, device=device), []
options = {"mixed": False}
mixed = options["mixed"]


class Scaling:
    def __init__(self, loss):
        self.loss = loss

    def __enter__(self):
        return self.loss * 2

    def __exit__(self, *_):
        shown.append("scaled")


for x in batches:
    output = model(x)
    loss = output.square().mean()
    del output
    optimizer.zero_grad()
    if mixed:
        with Scaling(loss) as scaled:  # not run
            scaled.backward()  # not run
    else:
        loss.backward()
    optimizer.step()
    shown.append(loss.item())

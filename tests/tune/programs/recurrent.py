"""A recurrent model whose state is a tuple; a condition that is always the same chooses the optimizer."""

import random as x

import torch
from torch import nn

device = torch.device("cuda")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.outer = nn.Linear(8, 1)

    def forward(self, x, state):
        one = torch.tanh(self.inner(torch.cat([x, state[0]], 1)))
        return self.outer(one), (one[:, :4], one[:, 4:] + state[1])


def detached(state):
    if isinstance(state, torch.Tensor):
        return state.detach()
    return tuple(detached(each) for each in state)


uses_optimizer = True
model = Model().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown, total = [], 0.0
state = torch.zeros(6, 4, device=device), torch.zeros(6, 4, device=device)
data = torch.rand(60, 4, device=device)
for _, i in enumerate(range(0, 54, 6)):
    x = data[i : i + 6]  # the name of a module, too
    if uses_optimizer:
        optimizer.zero_grad()
    else:
        model.zero_grad()
    state = detached(state)
    output, state = model(x, state)
    loss = output.square().mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    if uses_optimizer:
        optimizer.step()
    else:
        for parameter in model.parameters():
            parameter.data.add_(parameter.grad, alpha=-0.1)
    total += loss.item()
    shown.append(total)

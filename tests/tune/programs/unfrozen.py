"""Later epochs train other parameters, keep the statistics of a normalization, and clear states of the optimizer."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 8), nn.Linear(8, 1)).to(
    device
)
model[0].requires_grad_(False)
rest = [parameter for name, parameter in model.named_parameters() if not name.startswith("3.")]
optimizer = torch.optim.Adam(rest, lr=0.01)
shown = []
for epoch in range(7):
    for _ in range(6):
        x = torch.rand(6, 4, device=device)
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        shown.append(loss.item())
    if epoch == 0:
        model[0].requires_grad_(True)
    elif epoch == 1:
        model[1].eval()
    elif epoch == 2:
        optimizer.state.clear()
    elif epoch == 3:
        optimizer.add_param_group({"params": [*model[3].parameters()], "lr": 0.1})
    elif epoch == 4:
        model[2] = nn.Tanh()
    else:
        for state in optimizer.state.values():
            state["exp_avg"] = torch.zeros_like(state["exp_avg"])

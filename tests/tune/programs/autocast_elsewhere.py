"""A trainer enters autocast around each step, whose copies of weights an evaluation in front of the step has made."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []


def training_step(x):
    optimizer.zero_grad()
    loss = model(x).float().square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


def fit():
    for _ in range(8):
        x = torch.rand(6, 4, device=device)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            model[0](x)
            loss = training_step(x)
        shown.append(loss.item())


fit()

"""Each branch of a condition that stays the same has a backward pass and a step; one of them did not run."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []


def train(model, optimizer, scaler=None):
    for _ in range(10):
        x = torch.rand(6, 4, device=device)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()  # not run
            scaler.step(optimizer)  # not run
            scaler.update()  # not run
        else:
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        shown.append(loss.item())


train(model, optimizer)

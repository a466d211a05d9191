"""A checkpoint is written between two steps and loaded some steps later."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
for index in range(16):
    x = torch.rand(6, 4, device=device)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())
    if index == 5:
        weights = {name: each.clone() for name, each in model.state_dict().items()}
        parts = {
            key: {name: each.clone() for name, each in state.items()}
            for key, state in optimizer.state_dict()["state"].items()
        }
        saved = {"state": parts, "param_groups": optimizer.state_dict()["param_groups"]}
        assert not saved["param_groups"][0]["capturable"]
    if index == 8:
        model.load_state_dict(weights)
        optimizer.load_state_dict(saved)

"""The step checks its options."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown, method = [], "square"
for _ in range(8):
    x = torch.rand(6, 4, device=device)
    assert x.shape[1] == model[0].in_features, f"{x.shape}"
    if method == "square":
        loss = model(x).square().mean()
    elif method == "absolute":
        loss = model(x).abs().mean()
    else:
        raise ValueError(f"no method {method}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())

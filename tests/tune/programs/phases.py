"""One loop trains and evaluates, by the name of its phase, as in a tutorial of torchvision."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
batches = torch.rand(6, 6, 4, device=device)
for _ in range(3):
    for phase in ["train", "val"]:
        if phase == "train":
            model.train()
        else:
            model.eval()
        total = 0.0
        for x in batches:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                output = model(x)
                loss = output.square().mean()
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            total += loss.item() * x.size(0)
        shown.append(total)

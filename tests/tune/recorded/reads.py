"""Numbers that are read in each step, and constants that are made again for it."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
rows, width = (4096, 1024) if device.type == "cuda" else (32, 64)
inputs = torch.randn(8, rows, width, device=device)
targets = torch.randint(0, 10, (8, rows), device=device)
layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(4)]
model = nn.Sequential(*layers, nn.Linear(width, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses, hits, highest = [], [], []
for step in range(400):
    x, y = inputs[step % 8], targets[step % 8]
    weights = torch.tensor([1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5]).to(device)
    offset = torch.zeros(width).to(device)
    scores = model(x + offset)
    loss = nn.functional.cross_entropy(scores, y, weight=weights)
    losses.append(loss.item())
    hits.append((scores.argmax(-1) == y).sum().item())
    highest.append(scores.max().item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(sum(losses), sum(hits), max(highest))

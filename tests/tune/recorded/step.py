"""A deep and narrow model whose steps are short: the GPU waits for Python. It reads the loss in each step."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
inputs = torch.randn(64, 32, 64, device=device)
targets = torch.randint(0, 10, (64, 32), device=device)
layers = [nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(), nn.Dropout(0.1)) for _ in range(12)]
model = nn.Sequential(*layers, nn.Linear(64, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 200)
losses = []
for step in range(200):
    x, y = inputs[step % 64], targets[step % 64]
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
print(sum(losses) / len(losses))

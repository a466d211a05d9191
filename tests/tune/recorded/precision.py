"""A transformer in float32, whose products keep the GPU busy."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
width, length = (1024, 512) if device == "cuda" else (64, 16)
torch.manual_seed(0)
inputs = torch.randn(8, 16, length, width, device=device)
targets = torch.randint(0, 100, (8, 16, length), device=device)
layers = [nn.TransformerEncoderLayer(width, 8, 4 * width, 0.0, batch_first=True) for _ in range(6)]
model = nn.Sequential(*layers, nn.Linear(width, 100)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for step in range(200):
    x, y = inputs[step % 8], targets[step % 8]
    optimizer.zero_grad()
    logits = model(x)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    loss.backward()
    optimizer.step()

"""Large products of matrices, which keep the GPU busy: there is nothing to gain."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
width, rows = (4096, 16384) if device == "cuda" else (64, 256)
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.arange(400)), batch_size=1)
inputs = torch.randn(4, rows, width, device=device, dtype=torch.bfloat16)
layers = [nn.Linear(width, width, bias=False) for _ in range(6)]
model = nn.Sequential(*layers).to(device, torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
for step, _ in enumerate(loader):
    x = inputs[step % 4]
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()

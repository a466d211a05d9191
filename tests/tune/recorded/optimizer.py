"""An optimizer that updates one parameter after the other, gradients that are filled with zeros, copies that wait."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
data = TensorDataset(torch.randn(400 * 32, 64), torch.randint(0, 10, (400 * 32,)))
loader = DataLoader(data, batch_size=32)
layers = [nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU()) for _ in range(24)]
model = nn.Sequential(*layers, nn.Linear(64, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
for x, y in loader:
    x = x.to(device)
    y = y.to(device)
    optimizer.zero_grad(set_to_none=False)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()

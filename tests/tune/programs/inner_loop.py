"""Each call of a method makes some passes in a loop, with tensors and numbers of its own, as a critic is trained."""

import torch
from torch import nn

device = torch.device("cuda")
shown = []


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.001)
        self.scale = 1.0

    def update(self, batch):  # called again
        x, weight = batch
        self.scale = 0.5 + len(shown) // 9
        rows = x.shape[0]
        total = torch.zeros((), device=device)
        for _ in range(3):
            self.optimizer.zero_grad()
            noise = torch.rand(rows, 4, device=device)
            loss = (self.model(x + noise) * self.scale * weight).abs().mean()
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        shown.append(total.item())


trainer = Trainer()
model, optimizer = trainer.model, trainer.optimizer
for index in range(18):
    size = 6 if index % 6 < 5 else 3
    trainer.update((torch.rand(size, 4, device=device), torch.tensor(0.5 + index / 20, device=device)))

"""A weight that a trainer keeps grows in each step: it is a tensor in the graph, and a number for all other code."""

import torch
from torch import nn

device = torch.device("cuda")


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        self.weight = 0.0

    def fit(self, x):
        output = self.model(x)
        loss = (output - x).square().mean() + self.weight * output.square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def train(self, batches):
        losses = []
        for x in batches:
            loss = self.fit(x)
            self.weight += 0.125  # moves
            losses.append([loss.item(), self.weight])
        return losses


model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4)).to(device)
trainer = Trainer(model)
optimizer = trainer.optimizer
shown = trainer.train(torch.rand(12, 6, 4, device=device))

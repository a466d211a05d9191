"""Evaluation in training mode, and what only looks like it."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(784, 128)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(128, 10)

    def forward(self, x):
        return self.last(self.drop(F.relu(self.first(x))))


class Plain(nn.Module):
    """Nothing in it depends on the mode."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(784, 128)
        self.last = nn.Linear(128, 10)

    def forward(self, x):
        return self.last(F.relu(self.first(x)))


def train(model, loader, optimizer):
    model.train()
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()


@torch.no_grad()
def validate(model, loader):
    hits = 0
    for x, y in loader:
        hits += (model(x).argmax(1) == y).sum()  # error: TPF503
    return hits.item()


def main(train_loader, val_loader):
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        train(model, train_loader, optimizer)
        print(epoch, validate(model, val_loader))


class Experiment:
    def __init__(self, train_loader, test_loader):
        self.model = Net().cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.train_loader = train_loader
        self.test_loader = test_loader

    def run(self):
        for x, y in self.train_loader:
            F.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()

    def test(self):
        with torch.inference_mode():
            for x, y in self.test_loader:
                print(F.cross_entropy(self.model(x), y))  # error: TPF503


def train_and_check(net, train_loader, val_loader, optimizer):
    for x, y in train_loader:
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        for x, y in val_loader:
            print(F.cross_entropy(net(x), y))  # error: TPF503


# What follows is fine.


def predict_with_dropout_samples(model, loader, times):
    """Monte Carlo dropout draws on purpose."""
    with torch.no_grad():
        return [torch.stack([model(x) for _ in range(times)]).var(0).cpu() for x in loader]


def validate_plain(loader):
    model = Plain().cuda()
    hits = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum()
    return hits.item()


def preview(model, batch):
    """One batch, and no name that promises an evaluation."""
    with torch.no_grad():
        return model(batch).argmax(1).cpu()


class Perceptual(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.features = features

    def forward(self, x, y):
        return F.mse_loss(self.features(x), self.features(y))


def validate_settings(settings):
    for name, value in settings.items():
        if value is None:
            raise ValueError(name)


def test_step(scheduler, losses):
    for loss in losses:
        scheduler.step(loss)


def evaluate_in_context(model, loader, evaluating):
    """A context manager that is not seen here sets the mode, by its name."""
    hits = 0
    with evaluating(model), torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum()
    return hits.item()

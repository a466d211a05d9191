"""Evaluation in training mode, and what only looks like it."""

import network
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


# Models that are the same in both modes.


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(28, 128, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class DropsBetweenLayers(Recurrent):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(28, 128, 2, batch_first=True, bidirectional=True, dropout=0.2)


class OfParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.Sequential(Recurrent(), nn.ReLU())

    def forward(self, x):
        return self.parts(x)


class OfModalParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.Sequential(Net(), nn.ReLU())

    def forward(self, x):
        return self.parts(x)


def modes_that_change_nothing(train_loader, test_loader):
    linear = nn.Linear(784, 10).cuda()
    stack = nn.Sequential(nn.Linear(784, 10), nn.Sequential(nn.LayerNorm(10), nn.ReLU())).cuda()
    recurrent = Recurrent().cuda()
    parts = OfParts().cuda()
    for x, y in train_loader:
        (linear(x) + stack(x) + recurrent(x) + parts(x)).sum().backward()
    with torch.no_grad():
        for x, y in test_loader:
            print(linear(x), stack(x), recurrent(x), parts(x))


def modes_that_change_something(train_loader, test_loader):
    linear = nn.Linear(784, 10).cuda()
    stack = nn.Sequential(nn.Linear(784, 10), nn.Sequential(nn.BatchNorm1d(10), nn.ReLU())).cuda()
    for x, y in train_loader:
        (linear(x) + stack(x)).sum().backward()
    with torch.no_grad():
        for x, y in test_loader:
            linear(x)
            print(stack(x))  # error: TPF503


def part_of_parts(train_loader, test_loader):
    model = OfModalParts().cuda()
    for x, y in train_loader:
        model(x).sum().backward()
    with torch.no_grad():
        for x, y in test_loader:
            print(model(x))  # error: TPF503


def asked_to_drop(train_loader, test_loader):
    model = DropsBetweenLayers().cuda()
    for x, y in train_loader:
        model(x).sum().backward()
    with torch.no_grad():
        for x, y in test_loader:
            print(model(x))  # error: TPF503


network = network.Recurrent(10000, 200)


def train_of_file(batches, optimizer):
    for x, y in batches:
        F.cross_entropy(network(x), y).backward()
        optimizer.step()


def evaluate_of_file(source):
    """The class is in a file that nobody sees; its name was the module's before."""
    total = 0
    with torch.no_grad():
        for i in range(0, len(source), 20):
            total += F.cross_entropy(network(source[i : i + 20]), source[i + 1 : i + 21])  # error: TPF503
    return total / len(source)


def validate_any(model: nn.Module, loader):
    """An annotation does not say what the model holds."""
    hits = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum()  # error: TPF503
    return hits.item()

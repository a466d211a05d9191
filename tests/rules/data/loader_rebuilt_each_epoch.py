"""Loaders inside and outside of loops over epochs."""

from torch import nn
from torch.utils.data import DataLoader, Dataset


def train(model: nn.Module, data: Dataset, epochs: int) -> None:
    for epoch in range(epochs):
        loader = DataLoader(data, batch_size=64, num_workers=8)  # audit: TPF404
        for x in loader:
            model(x).sum().backward()


def at_once(model: nn.Module, data: Dataset, epochs: int) -> None:
    for epoch in range(epochs):
        for x in DataLoader(data, batch_size=64):  # audit: TPF404
            model(x).sum().backward()


class Trainer:
    def fit(self, model: nn.Module) -> None:
        while self.running:
            self.loader = DataLoader(self.data, self.batch_size, num_workers=self.workers)  # audit: TPF404
            for i, x in enumerate(self.loader):
                model(x).sum().backward()


class Images(Dataset):
    def __init__(self, paths: list[str]):
        self.paths = paths


def with_its_data(model: nn.Module, paths: list[str], epochs: int) -> None:
    for epoch in range(epochs):
        data = Images(paths)
        loader = DataLoader(data, batch_size=64, num_workers=8)  # audit: TPF404
        for x in loader:
            model(x).sum().backward()


def train_epoch(model: nn.Module, loader: DataLoader) -> None:
    for x in loader:
        model(x).sum().backward()


def consumed_elsewhere(model: nn.Module, data: Dataset, epochs: int) -> None:
    for epoch in range(epochs):
        loader = DataLoader(data, batch_size=64, num_workers=8)  # audit: TPF404
        train_epoch(model, loader=loader)


def of_a_growing_buffer(model: nn.Module, buffer: list, collect, epochs: int) -> None:
    for epoch in range(epochs):
        collect(buffer)
        loader = DataLoader(Images(buffer), batch_size=64)
        train_epoch(model, loader)


def passed_to_others(model: nn.Module, data: Dataset, keep, epochs: int) -> None:
    for epoch in range(epochs):
        loader = DataLoader(data, batch_size=64)
        keep(loader)


def made_once(model: nn.Module, data: Dataset, epochs: int) -> None:
    loader = DataLoader(data, batch_size=64, num_workers=8)
    for epoch in range(epochs):
        for x in loader:
            model(x).sum().backward()


def folds(model: nn.Module, parts: list[Dataset]) -> None:
    for part in parts:
        loader = DataLoader(part, batch_size=64)
        for x in loader:
            model(x).sum().backward()


def other_data(model: nn.Module, make, epochs: int) -> None:
    for epoch in range(epochs):
        data = make(epoch)
        for x in DataLoader(data, batch_size=64):
            model(x).sum().backward()
        for x in DataLoader(make(epoch), batch_size=64):
            model(x).sum().backward()


def sizes(model: nn.Module, data: Dataset) -> None:
    for size in (16, 32, 64):
        for x in DataLoader(data, batch_size=size):
            model(x).sum().backward()


def never_used(data: Dataset, epochs: int) -> list[DataLoader]:
    made = []
    for epoch in range(epochs):
        made.append(DataLoader(data, batch_size=64))
    return made

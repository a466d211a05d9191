"""Loaders by whether their workers stay."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def train(model: nn.Module, data: Dataset, epochs: int) -> None:
    loader = DataLoader(data, batch_size=64, num_workers=8, persistent_workers=True)
    for epoch in range(epochs):
        for x in loader:
            model(x).sum().backward()


def both(model: nn.Module, data: Dataset, held_out: Dataset, count: int) -> None:
    loader = DataLoader(data, 64, True, num_workers=count)
    validation = DataLoader(held_out, 64, num_workers=4, persistent_workers=True)
    for epoch in range(10):
        for i, x in enumerate(loader):
            model(x).sum().backward()
        with torch.no_grad():
            for x in validation:
                model(x)


class Fitter:
    def __init__(self, data: Dataset):
        self.loader = DataLoader(data, num_workers=2, persistent_workers=True)

    def fit(self, model: nn.Module) -> None:
        while True:
            for x in self.loader:
                model(x).sum().backward()


def kept(model: nn.Module, data: Dataset) -> None:
    loader = DataLoader(data, num_workers=8, persistent_workers=True)
    for epoch in range(10):
        for x in loader:
            model(x).sum().backward()


def without_workers(model: nn.Module, data: Dataset) -> None:
    loader, other = DataLoader(data), DataLoader(data, num_workers=0)
    for epoch in range(10):
        for x in loader:
            model(x).sum().backward()
        for x in other:
            model(x).sum().backward()


def one_epoch(model: nn.Module, data: Dataset) -> None:
    loader = DataLoader(data, num_workers=8)
    for x in loader:
        model(x).sum().backward()


def as_the_user_says(model: nn.Module, data: Dataset, options: dict[str, int]) -> None:
    loader = DataLoader(data, num_workers=8, **options)
    for epoch in range(10):
        for x in loader:
            model(x).sum().backward()


def given_away(data: Dataset) -> DataLoader:
    return DataLoader(data, num_workers=8)


def folds(model: nn.Module, parts: list[Dataset]) -> None:
    for part in parts:
        loader = DataLoader(part, num_workers=8)
        print(len(loader))


def made_anew(model: nn.Module, data: Dataset) -> None:
    for epoch in range(10):
        loader = DataLoader(data, num_workers=8)
        for x in loader:
            model(x).sum().backward()


def one_epoch(model, loader) -> None:
    for x in loader:
        model(x).sum().backward()


def with_options(model, data, epochs: int, cuda: bool) -> None:
    options = {"batch_size": 64}
    if cuda:
        more = {"num_workers": 1, "pin_memory": True}
        options.update(more)
    loader = DataLoader(data, **options)
    for epoch in range(epochs):
        one_epoch(model, loader)


def with_persistent_options(model, data, epochs: int) -> None:
    options = dict(batch_size=64, num_workers=2)
    options["persistent_workers"] = True
    loader = DataLoader(data, **options)
    for epoch in range(epochs):
        one_epoch(model, loader)


def with_hidden_options(model, data, epochs: int, more: dict) -> None:
    options = {"num_workers": 2}
    options.update(more)
    loader = DataLoader(data, **options)
    for epoch in range(epochs):
        one_epoch(model, loader)


def once_handed_on(model, data) -> None:
    loader = DataLoader(data, num_workers=2)
    one_epoch(model, loader)


class Trainer:
    def __init__(self, model) -> None:
        self.model = model

    def train_epoch(self, batches) -> None:
        for x in batches:
            self.model(x).sum().backward()

    def size(self, batches, limit: int) -> int:
        return min(len(batches), limit)


def by_a_method(model, data, epochs: int) -> None:
    loader = DataLoader(data, num_workers=2, persistent_workers=True)
    trainer = Trainer(model)
    for epoch in range(epochs):
        trainer.train_epoch(loader)


def once_by_a_method(model, data) -> None:
    loader = DataLoader(data, num_workers=2)
    Trainer(model).train_epoch(loader)


def only_measured(model, data, epochs: int) -> None:
    loader = DataLoader(data, num_workers=2)
    trainer = Trainer(model)
    for epoch in range(epochs):
        trainer.size(loader, 10)


SETTINGS = dict(batch_size=64, num_workers=8, pin_memory=True)
KEPT = {**SETTINGS, "persistent_workers": True}


def settings_of_the_file(model, dataset, epochs: int):
    loader = DataLoader(dataset, **SETTINGS)
    for _ in range(epochs):
        for images in loader:
            model(images.cuda(non_blocking=True)).sum().backward()


def settings_that_keep_them(model, dataset, epochs: int):
    loader = DataLoader(dataset, **KEPT)
    for _ in range(epochs):
        for images in loader:
            model(images.cuda(non_blocking=True)).sum().backward()


class Learner:
    def __init__(self, dataset):
        self.settings = {"batch_size": 64, "num_workers": 8}
        self.loader = DataLoader(dataset, **self.settings)

    def fit(self, model, epochs: int):
        for _ in range(epochs):
            for images in self.loader:
                model(images.cuda(non_blocking=True)).sum().backward()

"""Loaders by their last batch, in a file that captures graphs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def train(model: nn.Module, data: Dataset) -> None:
    model = torch.compile(model, mode="reduce-overhead")
    loader = DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
    for x in loader:
        model(x.cuda()).sum().backward()


class Trainer:
    def __init__(self, data: Dataset, size: int):
        self.loader = DataLoader(data, size, True, num_workers=4, drop_last=True)

    def fit(self, model: nn.Module) -> None:
        for i, x in enumerate(self.loader):
            model(x.cuda()).sum().backward()


def at_once(model: nn.Module, data: Dataset) -> None:
    for x in DataLoader(data, batch_size=8, shuffle=True, drop_last=True):
        model(x.cuda()).sum().backward()


def dropped(model: nn.Module, data: Dataset) -> None:
    for x in DataLoader(data, batch_size=64, shuffle=True, drop_last=True):
        model(x.cuda()).sum().backward()


def as_the_user_says(model: nn.Module, data: Dataset, drop: bool) -> None:
    for x in DataLoader(data, batch_size=64, shuffle=True, drop_last=drop):
        model(x.cuda()).sum().backward()


def evaluation(model: nn.Module, data: Dataset) -> None:
    for x in DataLoader(data, batch_size=64, shuffle=False):
        model(x.cuda())
    for x in DataLoader(data, batch_size=64):
        model(x.cuda())


def one_by_one(model: nn.Module, data: Dataset) -> None:
    for x in DataLoader(data, shuffle=True):
        model(x.cuda()).sum().backward()
    for x in DataLoader(data, batch_size=1, shuffle=True):
        model(x.cuda()).sum().backward()


def given_away(data: Dataset) -> DataLoader:
    return DataLoader(data, batch_size=64, shuffle=True)


def of_batches(model: nn.Module, data: Dataset, sampler) -> None:
    for x in DataLoader(data, batch_sampler=sampler):
        model(x.cuda()).sum().backward()


def in_order(model: nn.Module, data: Dataset, optimizer: torch.optim.Optimizer) -> None:
    loader = DataLoader(data, batch_size=64, num_workers=4)
    for x in loader:
        model(x.cuda()).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def of_a_sampler(model: nn.Module, data: Dataset, sampler, optimizer: torch.optim.Optimizer) -> None:
    def step(x: torch.Tensor) -> None:
        model(x.cuda()).mean().backward()
        optimizer.step()

    for x in DataLoader(data, batch_size=64, sampler=sampler):
        step(x)


def fit(model: nn.Module, batches: DataLoader) -> None:
    for x in batches:
        model(x.cuda()).mean().backward()


def fitted_in_a_function(model: nn.Module, data: Dataset) -> None:
    fit(model, DataLoader(data, batch_size=64, drop_last=True))
    loader = DataLoader(data, batch_size=64)
    fit(model, batches=loader)

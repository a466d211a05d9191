"""Models that are moved in each step, and models that are moved once."""

import torch
from torch import nn
from torch.utils.data import DataLoader


def predict(model: nn.Module, loader: DataLoader) -> None:
    with torch.inference_mode():
        for x in loader:
            model.to("cuda")  # audit: TPF504
            model(x.cuda())


class Perceptual(nn.Module):
    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = nn.Sequential(network, nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.network = self.network.to(x.device)  # audit: TPF504
        return self.network(x)


def loaded(loader: DataLoader, path: str) -> None:
    model = nn.Linear(3, 4)
    for x in loader:
        model.load_state_dict(torch.load(path))  # audit: TPF504
        model(x)


def cast(loader: DataLoader) -> None:
    model = nn.Linear(3, 4)
    for x in loader:
        model.half()  # audit: TPF504
        model(x.half())


def once(model: nn.Module, loader: DataLoader) -> None:
    model.to("cuda")
    for x in loader:
        model(x.cuda())


def each_epoch(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for epoch in range(10):
        model.cuda()
        for x in loader:
            model(x.cuda()).sum().backward()
            optimizer.step()


def offloaded(model: nn.Module, loader: DataLoader) -> None:
    for x in loader:
        model.cuda()
        model(x.cuda())
        model.cpu()


def made_anew(sizes: list[int], loader: DataLoader) -> None:
    for x in loader:
        model = nn.Linear(3, 4)
        model.cuda()
        model(x.cuda())
        nn.CrossEntropyLoss().to(x.device)(x, x)


def shards(model: nn.Module, loader: DataLoader) -> None:
    for path in loader:
        model(torch.load(path))

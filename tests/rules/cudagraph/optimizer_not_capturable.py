"""Optimizers that count on the host, in CUDA graphs."""

import torch
from torch import nn
from torch.optim import RMSprop


def record(model: nn.Module, static_x: torch.Tensor):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x).sum().backward()
        optimizer.step()  # error: TPF809
    return graph


class Trainer:
    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = RMSprop(
            model.parameters(),
            lr=1e-2,
        )

    def record(self, static_x: torch.Tensor) -> None:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.train_step(static_x)

    def train_step(self, static_x: torch.Tensor) -> None:
        self.model(static_x).sum().backward()
        self.optimizer.step()  # error: TPF809


def explicit(model: nn.Module) -> None:
    optimizer = torch.optim.Adam(model.parameters(), capturable=False)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        optimizer.step()  # error: TPF809


# Look-alikes


def capturable(model: nn.Module, static_x: torch.Tensor) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        model(static_x).sum().backward()
        optimizer.step()


def no_counter(model: nn.Module, static_x: torch.Tensor) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        model(static_x).sum().backward()
        optimizer.step()


def after_the_replay(model: nn.Module, static_x: torch.Tensor) -> None:
    optimizer = torch.optim.Adam(model.parameters())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x).sum().backward()
    graph.replay()
    optimizer.step()


def eager(model: nn.Module, loader) -> None:
    optimizer = torch.optim.Adam(model.parameters())
    for x in loader:
        model(x).sum().backward()
        optimizer.step()


def decided_elsewhere(model: nn.Module, capturable: bool) -> None:
    optimizer = torch.optim.Adam(model.parameters(), capturable=capturable)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        optimizer.step()

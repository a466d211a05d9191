"""Gradients that a recorded backward pass fills, and what drops them."""

import torch
from torch import nn


def before_each_replay(model: nn.Module, optimizer: torch.optim.Optimizer, loader, static_x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x).sum().backward()
    for x in loader:
        static_x.copy_(x, non_blocking=True)
        optimizer.zero_grad()  # error: TPF816
        graph.replay()
        optimizer.step()


def after_each_step(model: nn.Module, optimizer: torch.optim.Optimizer, loader, static_x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x).sum().backward()
    for x in loader:
        static_x.copy_(x, non_blocking=True)
        graph.replay()
        optimizer.step()
        model.zero_grad(set_to_none=True)  # error: TPF816


def one_by_one(model: nn.Module, optimizer: torch.optim.Optimizer, loader, static_x: torch.Tensor):
    for p in model.parameters():
        p.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x).sum().backward()
    for x in loader:
        static_x.copy_(x, non_blocking=True)
        for p in model.parameters():
            p.grad = None  # error: TPF816
        graph.replay()
        optimizer.step()


class Trainer:
    def __init__(self, model: nn.Module, shape: tuple[int, int]):
        self.model = model.cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), fused=True)
        self.x = torch.zeros(shape, device="cuda")
        self.graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad()
        with torch.cuda.graph(self.graph):
            self.compute()

    def compute(self) -> None:
        self.model(self.x).mean().backward()

    def step(self, batch: torch.Tensor) -> None:
        self.x.copy_(batch)
        self.optimizer.zero_grad()  # error: TPF816
        self.graph.replay()
        self.optimizer.step()


# Look-alikes


def before_the_capture(model: nn.Module, optimizer: torch.optim.Optimizer, loader, static_x: torch.Tensor):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        model(static_x).sum().backward()
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x).sum().backward()
    for x in loader:
        static_x.copy_(x, non_blocking=True)
        graph.replay()
        optimizer.step()


def filled_with_zeros(model: nn.Module, optimizer: torch.optim.Optimizer, loader, static_x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x).sum().backward()
    for x in loader:
        static_x.copy_(x, non_blocking=True)
        optimizer.zero_grad(set_to_none=False)
        graph.replay()
        optimizer.step()


def in_the_graph(model: nn.Module, optimizer: torch.optim.Optimizer, loader, static_x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        optimizer.zero_grad(set_to_none=True)
        model(static_x).sum().backward()
    for x in loader:
        static_x.copy_(x, non_blocking=True)
        graph.replay()
        optimizer.step()


def the_step_too(model: nn.Module, loader, static_x: torch.Tensor):
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x).sum().backward()
        optimizer.step()
    for x in loader:
        static_x.copy_(x, non_blocking=True)
        graph.replay()
        optimizer.zero_grad()


def of_inference(model: nn.Module, optimizer: torch.optim.Optimizer, loader, static_x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        model(static_x)
    for x in loader:
        static_x.copy_(x, non_blocking=True)
        graph.replay()
        optimizer.zero_grad()

"""Python code in recorded blocks."""

import random

import numpy as np
import torch
from torch import nn


def rolled(model: nn.Module, static_x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        shift = random.randint(0, 4)  # error: TPF811
        out = model(torch.roll(static_x, shift, -1))
    return graph, out


def counted(model: nn.Module, static_x: torch.Tensor):
    graph, history, count = torch.cuda.CUDAGraph(), [], 0
    with torch.cuda.graph(graph):
        loss = model(static_x).sum()
        loss.backward()
        history.append(loss)
        count += 1  # error: TPF811
    return graph, loss, count


class Step:
    def __init__(self, model: nn.Module, x: torch.Tensor):
        self.model, self.x = model, x
        self.steps = 0
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = self.run()

    def run(self) -> torch.Tensor:
        self.steps += 1  # error: TPF811
        return self.model(self.x * np.random.uniform())  # error: TPF811


# Look-alikes


def beside_the_replay(graph, static_x: torch.Tensor, x: torch.Tensor, count: int) -> int:
    static_x.copy_(torch.roll(x, random.randint(0, 4), -1))
    graph.replay()
    count += 1
    return count


def on_the_gpu(model: nn.Module, static_x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(static_x + torch.rand_like(static_x))
        out += 1
    return graph, out


def of_several(model: nn.Module, inputs: list[torch.Tensor]):
    graphs, count = [], 0
    for static_x in inputs:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(static_x)
            count += 1
        graphs.append(graph)
    return graphs, count


def of_its_own(model: nn.Module, static_x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale = 1.0
        for layer in model.children():
            static_x = layer(static_x) * scale
            scale += 0.5
    return graph, static_x


def seeded(model: nn.Module, static_x: torch.Tensor):
    random.seed(0)
    shift = random.randint(0, 4)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(torch.roll(static_x, shift, -1))
    return graph, out

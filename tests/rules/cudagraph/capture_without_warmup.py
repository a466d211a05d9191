"""CUDA graphs of code that has not run."""

import torch
from torch import nn


def record(model: nn.Module, static_x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # audit: TPF802
        static_y = model(static_x)
    return graph, static_y


def helper(x: torch.Tensor) -> torch.Tensor:
    return x @ x


class Runner:
    def __init__(self, x: torch.Tensor) -> None:
        self.net = nn.Linear(8, 8).cuda()
        self.x = x

    def record(self) -> None:
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):  # audit: TPF802
            self.y = self.net(self.x)
            self.y.sum().backward()


def record_function(static_x: torch.Tensor) -> torch.Tensor:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=None):  # audit: TPF802
        y = helper(static_x)
    return y


# Look-alikes


def on_a_side_stream(model: nn.Module, static_x: torch.Tensor):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(static_x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_y = model(static_x)
    return graph, static_y


def ran_before(model: nn.Module, static_x: torch.Tensor):
    model = model.cuda()
    model(static_x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_y = model(static_x)
    return graph, static_y


def elementwise(static_x: torch.Tensor) -> None:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.relu(static_x) * 2
    graph.replay()


def by_name(model: nn.Module, static_x: torch.Tensor, warmup) -> None:
    warmup(model, static_x)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        model(static_x)


def graphed(model: nn.Module, static_x: torch.Tensor) -> nn.Module:
    return torch.cuda.make_graphed_callables(model, (static_x,))


def no_graph(model: nn.Module, graph, static_x: torch.Tensor) -> torch.Tensor:
    with graph:
        return model(static_x)

"""CUDA graphs that a loop records: with a pool for each, and with one for all."""

import torch
from torch import nn


def by_size(model: nn.Module, sizes=(1, 2, 4, 8)):
    graphs = {}
    for size in sizes:
        x = torch.zeros(size, 512, device="cuda")
        model(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # audit: TPF813
            out = model(x)
        graphs[size] = graph, x, out
    return graphs


class Runner:
    def __init__(self, model: nn.Module):
        self.model = model
        self.graphs = {size: self.record(size) for size in (1, 2, 4)}

    def record(self, size: int):
        x = torch.zeros(size, 512, device="cuda")
        self.model(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):  # audit: TPF813
            out = self.model(x)
        return graph, x, out


def by_hand(model: nn.Module, sizes: list[int]):
    recorded = []
    for size in reversed(sizes):
        x = torch.zeros(size, 512, device="cuda")
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()  # audit: TPF813
        out = model(x)
        graph.capture_end()
        recorded.append((graph, x, out))
    return recorded


# Look-alikes


def with_one_pool(model: nn.Module, sizes=(8, 4, 2, 1)):
    graphs, pool = {}, torch.cuda.graph_pool_handle()
    for size in sizes:
        x = torch.zeros(size, 512, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            out = model(x)
        graphs[size] = graph, x, out
    return graphs


def with_the_pool_of_the_first(model: nn.Module, sizes: list[int]):
    graphs, pool = [], None
    for size in sizes:
        x = torch.zeros(size, 512, device="cuda")
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(pool)
        out = model(x)
        graph.capture_end()
        pool = pool or graph.pool()
        graphs.append((graph, x, out))
    return graphs


def once(model: nn.Module, x: torch.Tensor):
    for _ in range(3):
        model(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(x)
    return graph, out


def as_asked(model: nn.Module, sizes: list[int], **options: object):
    for size in sizes:
        x = torch.zeros(size, 512, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, **options):
            out = model(x)
        yield graph, x, out


def replayed(graph: torch.cuda.CUDAGraph, static_x: torch.Tensor, batches) -> None:
    for x in batches:
        static_x.copy_(x)
        graph.replay()


def within(model: nn.Module, x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(3):
            x = model(x)
    return graph, x


def in_each_step(model: nn.Module, loader) -> None:
    for x in loader:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(x)
        graph.replay()
        print(out)

"""Captures of CUDA graphs in each step, and those that are made once."""

import functools

import torch
from torch import nn


def in_a_training_loop(model: nn.Module, loader):
    for x in loader:
        static_x = x.cuda(non_blocking=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # error: TPF815
            model(static_x)
        graph.replay()


class Server:
    def __init__(self, model: nn.Module):
        self.model = model.cuda().eval()

    def answer(self, x: torch.Tensor) -> torch.Tensor:
        x = x.cuda(non_blocking=True)
        graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.graph(graph):  # error: TPF815
            y = self.model(x)
        graph.replay()
        return y

    def serve(self, requests):
        for each in requests:
            yield self.answer(each)


def layer_by_layer(blocks, loader):
    for x in loader:
        x = x.cuda(non_blocking=True)
        for block in blocks:
            x = torch.cuda.make_graphed_callables(block, (x,))(x)  # error: TPF815
        x.sum().backward()


class Helped:
    def __init__(self, model: nn.Module):
        self.model = model.cuda().eval()

    @torch.inference_mode()
    def record(self, x: torch.Tensor):
        static = x.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # error: TPF815
            y = self.model(static)
        return graph, static, y

    def answer(self, x: torch.Tensor) -> torch.Tensor:
        graph, _, y = self.record(x.cuda(non_blocking=True))
        graph.replay()
        return y.clone()


def serve_helped(helped: Helped, requests):
    for each in requests:
        yield helped.answer(each)


# Look-alikes


class Remembering:
    def __init__(self, model: nn.Module):
        self.model, self.graphs = model.cuda().eval(), {}

    @torch.inference_mode()
    def record(self, x: torch.Tensor):
        static = x.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = self.model(static)
        return graph, static, y

    def answer(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape not in self.graphs:
            graph, static, y = self.record(x.cuda(non_blocking=True))
            self.graphs[x.shape] = graph, static, y
        graph, static, y = self.graphs[x.shape]
        static.copy_(x, non_blocking=True)
        graph.replay()
        return y.clone()


def serve_remembering(remembering: Remembering, requests):
    for each in requests:
        yield remembering.answer(each)


class Keeping:
    def __init__(self, model: nn.Module):
        self.model, self.graphs = model.cuda().eval(), []

    @torch.inference_mode()
    def record(self, x: torch.Tensor):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = self.model(x)
        return graph, y

    def prepare(self, sizes):
        for size in sizes:
            graph, y = self.record(torch.zeros(size, 512, device="cuda"))
            graph.replay()
            self.graphs.append((graph, y))


def before_the_loop(model: nn.Module, loader, static_x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x)
    for x in loader:
        static_x.copy_(x, non_blocking=True)
        graph.replay()


def for_each_shape(model: nn.Module, loader):
    graphs = {}
    for x in loader:
        if x.shape not in graphs:
            static_x = x.cuda()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = model(static_x)
            graphs[x.shape] = graph, static_x, y
        graph, static_x, y = graphs[x.shape]
        static_x.copy_(x, non_blocking=True)
        graph.replay()


def for_each_size(model: nn.Module, sizes):
    graphs = {}
    for size in sizes:
        x = torch.zeros(size, 512, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = model(x)
        graph.replay()
        graphs[size] = graph, x, y
    return graphs


def a_benchmark(model: nn.Module, sizes, clock):
    for size in sizes:
        x = torch.zeros(size, 512, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(x)
        with clock:
            for _ in range(100):
                graph.replay()


@functools.cache
def remembered(model: nn.Module, size: int):
    x = torch.zeros(size, 512, device="cuda")
    return torch.cuda.make_graphed_callables(model, (x,)), x


def all_layers_once(blocks, sample: torch.Tensor, loader):
    blocks = [torch.cuda.make_graphed_callables(block, (sample,)) for block in blocks]
    for x in loader:
        x = x.cuda(non_blocking=True)
        for block in blocks:
            x = block(x)
        x.sum().backward()

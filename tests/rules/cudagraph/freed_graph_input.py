"""Inputs of CUDA graphs: those that nothing keeps, and others."""

import torch
from torch import nn


def capture(model: nn.Module):
    static_x = torch.zeros(8, 512, device="cuda")
    model(static_x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(static_x)
    return graph, out  # error: TPF810


def deleted(model: nn.Module):
    graph = torch.cuda.CUDAGraph()
    x = torch.randn(8, 512, device="cuda")
    with torch.cuda.graph(graph):
        y = model(x)
    del x  # error: TPF810
    return graph.replay, y


def by_hand(model: nn.Module, x: torch.Tensor):
    graph, static = torch.cuda.CUDAGraph(), None
    static = x.cuda()
    copied = static.clone()
    graph.capture_begin()
    out = model(copied)
    graph.capture_end()
    return {"graph": graph, "out": out}  # error: TPF810


def of_a_constant(model: nn.Module, x: torch.Tensor):
    weight = torch.tensor([0.5, 2.0], device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(x) * weight[0]
    return graph, out  # audit: TPF810


# Look-alikes


def returned(model: nn.Module):
    static_x = torch.zeros(8, 512, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(static_x)
    return graph, static_x, out


def in_a_closure(model: nn.Module):
    static_x = torch.zeros(8, 512, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(static_x)

    def run(x: torch.Tensor) -> torch.Tensor:
        static_x.copy_(x)
        graph.replay()
        return out.clone()

    return run, graph


def of_the_caller(model: nn.Module, static_x: torch.Tensor):
    first = static_x[:4]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(static_x) + model(first)
    return graph, out


def replayed_here(model: nn.Module) -> torch.Tensor:
    static_x = torch.zeros(8, 512, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(static_x)
    graph.replay()
    result = out.clone()
    return result


class Runner:
    def __init__(self, model: nn.Module):
        self.x = torch.zeros(8, 512, device="cuda")
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = model(self.x)


def stored(model: nn.Module, kept: list[torch.Tensor]):
    static_x = torch.zeros(8, 512, device="cuda")
    kept.append(static_x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(static_x)
    return graph, out


def inside(model: nn.Module):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x = torch.zeros(8, 512, device="cuda")
        out = model(x)
    return graph, out


class Engine:
    def __init__(self, model: torch.nn.Module):
        self.model = model.cuda().eval()

    def build(self, rows: int) -> None:
        x = torch.randn(rows, 512, device="cuda")
        self.model(x)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):  # error: TPF810
            self.out = self.model(x)

    def build_and_keep(self, rows: int) -> None:
        x = torch.randn(rows, 512, device="cuda")
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = self.model(x)
        self.x = x

    def build_with_own(self) -> None:
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = self.model(self.x)

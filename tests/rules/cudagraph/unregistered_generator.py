"""Generators in recorded blocks."""

import torch
from torch import nn


def noisy(model: nn.Module, static_x: torch.Tensor):
    generator = torch.Generator(device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        noise = torch.rand(static_x.shape, device="cuda", generator=generator)  # error: TPF812
        out = model(static_x + noise)
    return graph, out


class Sampler:
    def __init__(self, static_p: torch.Tensor):
        self.generator = torch.Generator("cuda").manual_seed(1)
        self.own = torch.Generator("cuda")
        self.static_p = static_p
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.static_p.exponential_(1, generator=self.own)  # error: TPF812
            self.out = self.sample()

    def sample(self) -> torch.Tensor:
        return torch.randn(8, device="cuda", generator=self.own)  # error: TPF812


# Look-alikes


def by_default(model: nn.Module, static_x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(static_x + torch.rand(static_x.shape, device="cuda"))
    return graph, out


def before(model: nn.Module, static_x: torch.Tensor):
    generator = torch.Generator(device="cuda")
    noise = torch.rand(static_x.shape, device="cuda", generator=generator)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(static_x + noise)
    return graph, out


def without_one(model: nn.Module, static_x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(static_x + torch.rand(static_x.shape, device="cuda", generator=None))
    return graph, out


def not_recorded(shape):
    generator = torch.Generator(device="cuda")
    return torch.rand(shape, device="cuda", generator=generator)


def given(model: nn.Module, static_x: torch.Tensor, generator):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(torch.rand(static_x.shape, device="cuda", generator=generator))
    return graph, out

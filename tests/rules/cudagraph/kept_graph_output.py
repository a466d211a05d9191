"""Outputs of CUDA graphs that are kept."""

import torch
from torch import nn


@torch.compile(mode="reduce-overhead")
def step(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


@torch.no_grad()
def run(batches) -> torch.Tensor:
    outputs = []
    for x in batches:
        outputs.append(step(x))  # error: TPF805
    return torch.cat(outputs)


@torch.no_grad()
def by_name(model: nn.Module, batches) -> dict:
    fast = torch.compile(model, mode="max-autotune")
    found = {}
    for index, x in enumerate(batches):
        found[index] = fast(x)  # error: TPF805
    return found


def replayed(model: nn.Module, batches, static_x: torch.Tensor) -> list:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_y = model(static_x)
    outputs = []
    for x in batches:
        static_x.copy_(x)
        graph.replay()
        outputs.append(static_y)  # error: TPF805
    return outputs


shared_x = torch.zeros(8, 3, device="cuda")
shared_graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(shared_graph):
    shared_y = shared_x * 2


def replayed_elsewhere(batches) -> list:
    outputs = []
    for x in batches:
        shared_x.copy_(x)
        shared_graph.replay()
        outputs.append(shared_y)  # error: TPF805
    return outputs


# Look-alikes


def replayed_and_cloned(batches) -> list:
    outputs = []
    for x in batches:
        shared_x.copy_(x)
        shared_graph.replay()
        outputs.append(shared_y.clone())
    return outputs


def of_its_own(batches, shared_y: torch.Tensor) -> list:
    outputs = []
    for x in batches:
        shared_x.copy_(x)
        shared_graph.replay()
        outputs.append(shared_y)
    return outputs


@torch.no_grad()
def cloned(batches) -> torch.Tensor:
    outputs = []
    for x in batches:
        outputs.append(step(x).clone())
    return torch.cat(outputs)


def used_up(batches) -> float:
    total = torch.zeros((), device="cuda")
    for x in batches:
        total += step(x).sum()
    return total.item()


def copied(model: nn.Module, batches, static_x: torch.Tensor) -> list:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_y = model(static_x)
    outputs = []
    for x in batches:
        static_x.copy_(x)
        graph.replay()
        outputs.append(static_y.clone())
        outputs.append(static_y.cpu())
    return outputs


@torch.compile
def plain(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def without_graphs(batches) -> list:
    outputs = []
    for x in batches:
        outputs.append(plain(x))
    return outputs


def recorded_each(model: nn.Module, batches) -> list:
    outputs = []
    for x in batches:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = model(x)
        graph.replay()
        outputs.append(y)
    return outputs


@torch.compile(mode="max-autotune-no-cudagraphs")
def tuned(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def keeps_tuned(batches) -> list:
    outputs = []
    for x in batches:
        outputs.append(tuned(x))
    return outputs

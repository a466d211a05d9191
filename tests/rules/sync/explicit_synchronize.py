"""Waiting for the device on purpose."""

import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x, y in loader:
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()  # error: TPF122


class Block(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.relu()
        torch.cuda.synchronize()  # error: TPF122
        return x


def predict(model: nn.Module, loader: DataLoader) -> list[torch.Tensor]:
    outputs = []
    for x, _ in loader:
        outputs.append(model(x.cuda()))
        torch.cuda.current_stream().synchronize()  # error: TPF122
    return outputs


# Look-alikes


def timed(model: nn.Module, loader: DataLoader) -> list[float]:
    seconds = []
    for x, _ in loader:
        torch.cuda.synchronize()
        start = time.perf_counter()
        model(x.cuda())
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return seconds


def timed_by_events(model: nn.Module, loader: DataLoader) -> list[float]:
    seconds = []
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for x, _ in loader:
        start.record()
        model(x.cuda())
        end.record()
        end.synchronize()
        seconds.append(start.elapsed_time(end))
    return seconds


def captured(model: nn.Module, x: torch.Tensor) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    for _ in range(3):
        model(x)
        torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        model(x)
    return graph


def before_the_host_looks(model: nn.Module, loader: DataLoader) -> list[float]:
    sums = []
    for x, _ in loader:
        y = model(x.cuda()).to("cpu", non_blocking=True)
        torch.cuda.synchronize()
        sums.append(y.sum().item())
    return sums


def once(model: nn.Module, loader: DataLoader) -> None:
    for x, _ in loader:
        model(x.cuda())
    torch.cuda.synchronize()


def profiled(model: nn.Module, loader: DataLoader) -> None:
    with torch.profiler.profile() as profile:
        for x, _ in loader:
            model(x.cuda())
            torch.cuda.synchronize()
            profile.step()


def in_order(model: nn.Module, loader: DataLoader) -> None:
    ready = torch.cuda.Event()
    for x, _ in loader:
        model(x.cuda())
        ready.record()
        ready.synchronize()  # error: TPF122


_TABLES: dict[str, torch.Tensor] = {}


class Cached(nn.Module):
    def forward(self, x: torch.Tensor, key: str) -> torch.Tensor:
        if key not in _TABLES:
            _TABLES[key] = torch.ones(8, device=x.device)
            torch.cuda.synchronize()
        return x * _TABLES[key]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.event = torch.cuda.Event()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.relu()
        self.event.record()
        self.event.synchronize()  # error: TPF122
        return x


class Stage(nn.Module):
    def __init__(self):
        super().__init__()
        self.event = torch.cuda.Event()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.event.record()
        x = x.relu()
        self.event.synchronize()  # audit: TPF122
        return x

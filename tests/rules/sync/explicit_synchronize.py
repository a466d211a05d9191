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


def train_from_pinned_memory(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, device) -> None:
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        torch.cuda.synchronize()  # error: TPF122


def train_with_events(model: nn.Module, loader: DataLoader, device: str = "cuda") -> None:
    for x, _ in loader:
        model(x.to(device, non_blocking=True)).sum().backward()
        done = torch.cuda.Event()
        done.record()
        done.synchronize()  # error: TPF122


def train_elsewhere(model: nn.Module, loader: DataLoader) -> None:
    for x, _ in loader:
        model(x.to("xpu", non_blocking=True)).sum().backward()
        torch.xpu.synchronize()  # error: TPF122
    for x, _ in loader:
        model(x.to("mps", non_blocking=True)).sum().backward()
        torch.mps.synchronize()  # error: TPF122
    for x, _ in loader:
        model(x.to("cuda", non_blocking=True)).sum().backward()
        torch.accelerator.synchronize()  # error: TPF122


def replays(graph: torch.cuda.CUDAGraph, inputs: torch.Tensor, outputs: torch.Tensor, loader: DataLoader):
    for x in loader:
        inputs.copy_(x, non_blocking=True)
        graph.replay()
        torch.cuda.synchronize()  # error: TPF122
        yield outputs.clone()


def captured_before(model: nn.Module, inputs: torch.Tensor, loader: DataLoader) -> None:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(inputs)
    for x, _ in loader:
        inputs.copy_(x)
        graph.replay()
        torch.cuda.synchronize()  # error: TPF122


def whole_epoch_timed(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> float:
    start = time.perf_counter()
    for x, y in loader:
        F.mse_loss(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
        torch.cuda.synchronize()  # error: TPF122
    return time.perf_counter() - start


def timed_rarely(model: nn.Module, loader: DataLoader) -> None:
    start = time.perf_counter()
    for step, (x, _) in enumerate(loader):
        model(x.cuda()).sum().backward()
        torch.cuda.synchronize()  # error: TPF122
        if step % 100 == 0:
            print(time.perf_counter() - start)


def copied_after_the_loop(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    for x, _ in loader:
        y = model(x.cuda())
        torch.cuda.synchronize()  # error: TPF122
    host = y.to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    return host.numpy()


def read_before(model: nn.Module, loader: DataLoader) -> None:
    for x, _ in loader:
        host = model(x.cuda()).to("cpu", non_blocking=True)
        print(host.shape)
        torch.cuda.synchronize()  # error: TPF122


# Look-alikes


class Offloaded(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.kept = torch.empty(size, pin_memory=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept.copy_(x, non_blocking=True)
        torch.cuda.synchronize()
        return x


def gathered_on_the_host(model: nn.Module, loader: DataLoader, device: torch.device) -> list[torch.Tensor]:
    outputs = []
    for x, _ in loader:
        outputs.append(model(x.to(device, non_blocking=True)).to("cpu", non_blocking=True))
        torch.cuda.synchronize()
    return outputs


def one_behind(model: nn.Module, loader: DataLoader) -> None:
    host = torch.empty(8, pin_memory=True)
    for x, _ in loader:
        torch.cuda.synchronize()
        print(host.sum())
        host.copy_(model(x.cuda()), non_blocking=True)


def one_buffer(model: nn.Module, rows: list[list[float]]) -> None:
    buffer, on_gpu = torch.empty(8, pin_memory=True), torch.empty(8, device="cuda")
    for row in rows:
        for i, value in enumerate(row):
            buffer[i] = value
        on_gpu.copy_(buffer, non_blocking=True)
        model(on_gpu)
        torch.cuda.synchronize()


def timed_from_pinned_memory(model: nn.Module, loader: DataLoader) -> list[float]:
    seconds, start = [], time.time()
    for x, _ in loader:
        model(x.cuda(non_blocking=True))
        torch.cuda.synchronize()
        seconds.append(time.time() - start)
        start = time.time()
    return seconds


def warmed_up(model: nn.Module, batches: list[torch.Tensor]) -> torch.cuda.CUDAGraph:
    for x in batches:
        model(x.cuda(non_blocking=True))
        torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(x)
    return graph


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


def two_buffers(model: nn.Module, queue: list[list[int]]) -> None:
    """The CPU fills the pinned memory that an earlier copy may still read."""
    host, device = torch.empty(2, 256, pin_memory=True), torch.empty(256, device="cuda")
    done = [torch.cuda.Event(), torch.cuda.Event()]
    for step, batch in enumerate(queue):
        done[step % 2].synchronize()
        host[step % 2, : len(batch)] = torch.tensor(batch)
        device.copy_(host[step % 2], non_blocking=True)
        done[step % 2].record()
        model(device)


class Engine:
    def __init__(self, graphs: dict[int, torch.cuda.CUDAGraph], inputs: dict, outputs: dict, host: dict) -> None:
        self.graphs, self.inputs, self.outputs, self.host = graphs, inputs, outputs, host

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        n = batch.shape[0]
        self.inputs[n].copy_(batch, non_blocking=True)
        self.graphs[n].replay()
        torch.cuda.synchronize()  # error: TPF122
        return self.outputs[n].clone()

    def forward_to_host(self, batch: torch.Tensor) -> torch.Tensor:
        n = batch.shape[0]
        self.inputs[n].copy_(batch)
        self.graphs[n].replay()
        self.host[n].copy_(self.outputs[n], non_blocking=True)
        torch.cuda.synchronize()
        return self.host[n]

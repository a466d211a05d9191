"""Inputs of CUDA graphs that are bound anew."""

import torch
from torch import nn


def train(model: nn.Module, optimizer, loader, static_x: torch.Tensor, static_y: torch.Tensor) -> None:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = nn.functional.mse_loss(model(static_x), static_y)
        loss.backward()
    for x, y in loader:
        static_x = x.cuda()  # error: TPF803
        static_y = y.to("cuda", non_blocking=True)  # error: TPF803
        graph.replay()
        optimizer.step()


class Runner:
    def __init__(self, model: nn.Module, x: torch.Tensor) -> None:
        self.static_x = x.clone()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.static_y = model(self.static_x)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.static_x = x  # error: TPF803
        self.graph.replay()
        return self.static_y.clone()


def scaled(x: torch.Tensor, rates: list[float]) -> torch.Tensor:
    rate = 0.1
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * rate
    for each in rates:
        rate = each  # error: TPF803
        graph.replay()
    return y


shared_x = torch.zeros(8, 3, device="cuda")
shared_graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(shared_graph):
    shared_y = shared_x * 2


def run_shared(x: torch.Tensor) -> torch.Tensor:
    global shared_x
    shared_x = x.cuda()  # error: TPF803
    shared_graph.replay()
    return shared_y.clone()


def scheduled(model: nn.Module, static_x: torch.Tensor, loader) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True, capturable=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x).sum().backward()
        optimizer.step()
    for step, x in enumerate(loader):
        static_x.copy_(x)
        graph.replay()
        scheduler.step()  # error: TPF803
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 / (step + 1)  # error: TPF803


class Scheduled:
    def __init__(self, model: nn.Module, x: torch.Tensor) -> None:
        self.model, self.x = model, x
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 10)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.record()

    def record(self) -> None:
        self.model(self.x).sum().backward()
        self.optimizer.step()

    def step(self) -> None:
        self.graph.replay()
        self.scheduler.step()  # error: TPF803


def of_a_dict(model: nn.Module, example: dict[str, torch.Tensor], queue) -> None:
    static = {name: tensor.cuda() for name, tensor in example.items()}
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(**static)
    for batch in queue:
        for name, tensor in batch.items():
            static[name] = tensor.cuda(non_blocking=True)  # error: TPF803
        graph.replay()
        print(y.sum())


class OfADict:
    def __init__(self, model: nn.Module) -> None:
        self.static = {"ids": torch.zeros(8, device="cuda"), "mask": torch.zeros(8, device="cuda")}
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = model(self.static)

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        self.static["ids"] = ids.cuda()  # error: TPF803
        self.graph.replay()
        return self.out.clone()


# Look-alikes


def filled(model: nn.Module, example: dict[str, torch.Tensor], queue) -> None:
    static = {name: tensor.cuda() for name, tensor in example.items()}
    x = torch.zeros(8, 3, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x, **static)
    outputs = {}
    for i, batch in enumerate(queue):
        for name, tensor in batch.items():
            static[name].copy_(tensor, non_blocking=True)
        x[i] = batch["row"].cuda()
        graph.replay()
        outputs[i] = y.clone()


def of_a_tensor(model: nn.Module, static_x: torch.Tensor, loader) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(1e-3, device="cuda"), capturable=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x).sum().backward()
        optimizer.step()
    for _ in loader:
        graph.replay()
        scheduler.step()


def step_outside(model: nn.Module, static_x: torch.Tensor, loader) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x).sum().backward()
    for _ in loader:
        graph.replay()
        optimizer.step()
        scheduler.step()


def run_with_a_local(x: torch.Tensor) -> torch.Tensor:
    shared_x = x.cuda()
    shared_graph.replay()
    return shared_y + shared_x


def run_with_a_copy(x: torch.Tensor) -> torch.Tensor:
    global shared_x
    shared_x.copy_(x)
    shared_graph.replay()
    return shared_y.clone()


def copied(model: nn.Module, loader, static_x: torch.Tensor) -> None:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(static_x)
    for x in loader:
        static_x.copy_(x)
        graph.replay()
        print(y.sum().item())


def before(model: nn.Module, loader) -> None:
    static_x = next(loader).cuda()
    static_x = static_x.float()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x)
    graph.replay()


def recorded_anew(model: nn.Module, loader) -> None:
    static_x = next(loader).cuda()
    for x in loader:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(static_x)
        graph.replay()
        static_x = x.cuda()
        graph.replay()


def others(model: nn.Module, loader, static_x: torch.Tensor) -> None:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(static_x)
    for x in loader:
        batch = x.cuda()
        static_x.copy_(batch)
        graph.replay()
        result = y.clone()
        print(result)


class Careful:
    def __init__(self, x: torch.Tensor) -> None:
        self.static_x = x.clone()
        self.graph = None

    def record(self, model: nn.Module) -> None:
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.static_y = model(self.static_x)

    def __call__(self, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        if self.graph is None:
            self.static_x = x.clone()
            self.record(model)
        self.static_x.copy_(x)
        self.graph.replay()
        return self.static_y.clone()

    def close(self) -> None:
        self.static_x = None
        self.graph = None


def no_replay(model: nn.Module, static_x: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        model(static_x)
    static_x = x
    return model(static_x)


def cooled(model: nn.Module, static_x: torch.Tensor, steps: int):
    """The graph computes with the first number."""
    temperature, scale = 1.0, 1.0
    model(static_x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = torch.softmax(model(static_x) / temperature * scale, dim=-1)
    for step in range(steps):
        temperature = max(0.1, temperature * 0.99)  # error: TPF803
        scale *= 0.5  # error: TPF803
        graph.replay()
        yield out.clone()


def counted(model: nn.Module, static_x: torch.Tensor, batches: list[torch.Tensor]) -> int:
    """No graph reads the count, and an operator in place keeps the memory."""
    done = 0
    model(static_x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(static_x)
    for x in batches:
        static_x *= 0
        static_x += x
        graph.replay()
        done += 1
    return done


class Cell:
    def __init__(self, net: nn.Module):
        self.net = net.cuda()
        self.state = torch.zeros(1, 64, device="cuda")
        self.later = None

    def step(self) -> None:
        self.out = self.net(self.state, self.later)

    def record(self) -> None:
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.step()

    def reset(self) -> None:
        self.state = torch.zeros(1, 64, device="cuda")  # error: TPF803

    def clear(self) -> None:
        self.state.zero_()

    def prepare(self, x: torch.Tensor) -> None:
        self.later = x.cuda()

    def tick(self) -> None:
        self.graph.replay()


def in_a_dict(net: nn.Module, rows: int):
    buffers = {"x": torch.zeros(rows, 128, device="cuda")}
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        buffers["y"] = net(buffers["x"])

    def run(batch: torch.Tensor) -> torch.Tensor:
        buffers["x"] = batch.cuda()  # error: TPF803
        graph.replay()
        return buffers["y"].clone()

    def run_in_place(batch: torch.Tensor) -> torch.Tensor:
        buffers["x"].copy_(batch)
        buffers["z"] = batch
        graph.replay()
        return buffers["y"].clone()

    return run, run_in_place

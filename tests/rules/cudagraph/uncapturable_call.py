"""What cannot be recorded by a CUDA graph."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def capture(model: nn.Module, static_x: torch.Tensor, batch: torch.Tensor):
    static_x = static_x.cuda()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(static_x)
        loss = y.sum()
        print(loss.item())  # error: TPF801
        if torch.isnan(y).any():  # error: TPF801
            y = y * 0
        kept = static_x[static_x > 0]  # error: TPF801
        torch.cuda.synchronize()  # error: TPF801
    return graph, kept


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * float(x.sum())  # error: TPF801


def graphed(x: torch.Tensor):
    block = Block().cuda()
    return torch.cuda.make_graphed_callables(block, (x.cuda(),))


def by_hand(x: torch.Tensor) -> None:
    x = x.cuda()
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin()
    y = x * 2
    count = int(y.sum())  # error: TPF801
    graph.capture_end()
    print(y.sum().item(), count)


def helped(x: torch.Tensor) -> None:
    x = x.cuda()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        helper(x)


def helper(x: torch.Tensor) -> list:
    return x.cuda().tolist()  # error: TPF801


class Step:
    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer
        self.graph = torch.cuda.CUDAGraph()

    def update(self, limit: float) -> None:
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if norm > limit:  # error: TPF801
            return
        self.optimizer.step()

    def capture(self, static_x: torch.Tensor) -> None:
        self.model(static_x).mean().backward()
        with torch.cuda.graph(self.graph):
            self.model(static_x).mean().backward()
            self.update(3.0)


class Gate(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:  # error: TPF801
            return x * 2
        return x


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() != 2:
            raise ValueError("rows are expected")
        return self.gate(x)


def graphed_parts(x: torch.Tensor):
    parts = {"gated": Gated().cuda()}
    parts["gated"] = torch.cuda.make_graphed_callables(parts["gated"], (x.cuda(),))
    return parts


def on_any_device(model: nn.Module, static_x: torch.Tensor):
    graph = torch.accelerator.Graph()
    with torch.Stream(), graph:
        total = model(static_x).sum()
        print(total.item())  # error: TPF801
    return graph


def on_xpu(model: nn.Module, static_x: torch.Tensor):
    recording = torch.xpu.graph(torch.xpu.XPUGraph())
    with recording:
        return model(static_x).sum().item()  # error: TPF801


# Look-alikes


class Validated(nn.Module):
    def __init__(self, validate: bool) -> None:
        super().__init__()
        self.validate = validate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.validate and x.isnan().any():  # audit: TPF801
            raise ValueError("not a number")
        return x * 2


def graphed_without_validation(x: torch.Tensor):
    return torch.cuda.make_graphed_callables(Validated(validate=False).cuda(), (x.cuda(),))




def before_and_after(model: nn.Module, batch: torch.Tensor) -> float:
    static_x = batch.cuda()
    if static_x.isnan().any():
        raise ValueError("not a number")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(static_x).sum()
    graph.replay()
    return y.item()


def pure(static_x: torch.Tensor) -> None:
    static_x = static_x.cuda()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        y = torch.where(static_x > 0, static_x, 0)
        y[y > 3] = 0.0
        y.view(static_x.shape[0], -1).sum().backward()


def eager(x: torch.Tensor) -> float:
    return x.cuda().sum().item()


def on_the_host() -> None:
    sizes = torch.arange(4)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.zeros(int(sizes[0]), device="cuda")


class Eager(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.sum().item()


def context(graph, x: torch.Tensor) -> None:
    with graph:
        x.cuda().sum().item()


def with_new_memory(model: nn.Module, x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
        host = torch.empty(1, pin_memory=True)  # audit: TPF801
        host.copy_(y.sum(), non_blocking=True)
    return graph, x, host


def with_old_memory(model: nn.Module, x: torch.Tensor):
    graph, host = torch.cuda.CUDAGraph(), torch.empty(1, pin_memory=True)
    with torch.cuda.graph(graph):
        y = model(x)
        host.copy_(y.sum(), non_blocking=True)
    return graph, x, host


def with_checkpoints(model: nn.Module, x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        checkpoint(model, x, use_reentrant=False).sum().backward()  # audit: TPF801
    return graph, x


def with_checkpoints_without_states(model: nn.Module, x: torch.Tensor):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        checkpoint(model, x, use_reentrant=False, preserve_rng_state=False).sum().backward()
    return graph, x

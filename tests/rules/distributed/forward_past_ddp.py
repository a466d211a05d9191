"""Forward passes of modules that DDP wraps."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, rank: int) -> None:
    model = DDP(model.cuda(rank), device_ids=[rank])
    for x, y in loader:
        loss = nn.functional.cross_entropy(model.module(x.cuda(rank)), y.cuda(rank))  # error: TPF927
        loss.backward()
        optimizer.step()


def scaled(model: nn.Module, x: torch.Tensor, scaler: torch.amp.GradScaler) -> None:
    ddp = DDP(model.cuda())
    with torch.autocast("cuda"):
        loss = ddp.module(x).mean()  # error: TPF927
    scaler.scale(loss).backward()


class Trainer:
    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer):
        self.model, self.optimizer = model.cuda(), optimizer
        self.ddp = DDP(self.model)

    def step(self, x: torch.Tensor) -> None:
        self.ddp.module(x).mean().backward()  # error: TPF927
        self.optimizer.step()

    def validate(self, x: torch.Tensor) -> float:
        return self.ddp.module(x).mean().item()


def under_another_name(model: nn.Module, loader: DataLoader) -> None:
    ddp = DDP(model.cuda())
    inner = ddp.module
    for x in loader:
        inner(x.cuda()).mean().backward()  # error: TPF927


# Look-alikes


def wrapped(model: nn.Module, x: torch.Tensor) -> None:
    ddp = DDP(model.cuda())
    ddp(x).mean().backward()
    torch.save(ddp.module.state_dict(), "model.pt")


def both(model: nn.Module, x: torch.Tensor) -> None:
    ddp = DDP(model.cuda())
    (ddp(x) + ddp.module(x)).mean().backward()


def without_autograd(model: nn.Module, x: torch.Tensor) -> None:
    ddp = DDP(model.cuda())
    with torch.no_grad():
        goal = ddp.module(x)
    (ddp(x) - goal).square().mean().backward()


class Holder(nn.Module):
    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x)


def of_another_wrapper(model: nn.Module, x: torch.Tensor) -> None:
    held = Holder(model)
    held.module(x).mean().backward()


def unknown(ddp, x: torch.Tensor) -> None:
    ddp.module(x).mean().backward()


def unwrapped(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    ddp = DDP(model.cuda())
    return ddp.module(x)


def of_either(model: nn.Module, x: torch.Tensor, parallel: bool) -> None:
    ddp = DDP(model.cuda())
    raw = ddp.module if parallel else model
    raw(x).mean().backward()


class Trainer:
    def __init__(self, model: nn.Module):
        self.ddp = DDP(model.cuda())

    def compute(self, x: torch.Tensor) -> torch.Tensor:
        return self.ddp.module(x).mean()  # error: TPF927

    def metric(self, x: torch.Tensor) -> torch.Tensor:
        return self.ddp.module(x).max()

    def fit(self, loader) -> None:
        for x in loader:
            loss = self.compute(x.cuda())
            loss.backward()
            best = self.metric(x.cuda())
            print(best)

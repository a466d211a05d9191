"""Where processes wait for each other."""

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()
        dist.barrier()  # error: TPF924


def gathered(model: nn.Module, loader: DataLoader) -> None:
    for x in loader:
        y = model(x.cuda())
        found = [None] * dist.get_world_size()
        torch.distributed.all_gather_object(found, len(y))  # error: TPF924


class Exchange(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sizes = [x.shape]
        dist.broadcast_object_list(sizes, src=0)  # error: TPF924
        return x


def set_up(rank: int) -> None:
    dist.init_process_group("nccl")
    dist.barrier()


def save_checkpoint(model: nn.Module, path: str) -> None:
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()


def each_epoch(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for epoch in range(10):
        for x in loader:
            model(x.cuda()).sum().backward()
            optimizer.step()
        dist.barrier()


def now_and_then(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for step, x in enumerate(loader):
        model(x.cuda()).sum().backward()
        optimizer.step()
        if step % 1000 == 0:
            dist.barrier()


def of_tensors(model: nn.Module, loader: DataLoader) -> None:
    for x in loader:
        y = model(x.cuda())
        dist.all_reduce(y)


class Cached(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape not in self.known:
            dist.barrier()
            self.known[x.shape] = 1
        return x


class Stops(nn.Module):
    def forward(self, x: torch.Tensor, stop: bool) -> torch.Tensor:
        if stop:
            dist.barrier()
            raise SystemExit
        return x

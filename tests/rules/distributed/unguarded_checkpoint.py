"""Who writes checkpoints."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader


def train(model: nn.Module, loader: DataLoader, path: str) -> None:
    dist.init_process_group("nccl")
    model = DistributedDataParallel(model)
    for epoch in range(10):
        for x in loader:
            model(x).sum().backward()
        torch.save(model.state_dict(), path)  # audit: TPF926


def keep(model: nn.Module, optimizer: torch.optim.Optimizer, path: str) -> None:
    torch.save({"model": model.state_dict()}, path)  # audit: TPF926


class Trainer:
    def __init__(self, model: nn.Module):
        self.model = DistributedDataParallel(model)

    def save(self, path: str, best: bool) -> None:
        if best:
            torch.save(self.model.module.state_dict(), path)  # audit: TPF926


def on_the_first(model: nn.Module, path: str) -> None:
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)


def left_early(model: nn.Module, path: str, local_rank: int) -> None:
    if local_rank != 0:
        return
    torch.save(model.state_dict(), path)


def one_file_each(model: nn.Module, folder: str, rank: int) -> None:
    torch.save(model.state_dict(), f"{folder}/{rank}.pt")


def asked(model: nn.Module, path: str, accelerator) -> None:
    if accelerator.is_main_process and path:
        torch.save(model.state_dict(), path)


def loaded(model: nn.Module, path: str) -> None:
    model.load_state_dict(torch.load(path, map_location="cpu"))

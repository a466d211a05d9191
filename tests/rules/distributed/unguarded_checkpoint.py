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


def once(model: nn.Module, optimizer: torch.optim.Optimizer, path: str) -> None:
    model = DistributedDataParallel(model)
    model(torch.zeros(3)).sum().backward()
    torch.save({"model": model.state_dict()}, path)  # audit: TPF926


class Trainer:
    def fit(self, model: nn.Module, loader: DataLoader, path: str) -> None:
        self.model = DistributedDataParallel(model)
        for i, x in enumerate(loader):
            self.model(x).sum().backward()
        torch.save(self.model.module.state_dict(), f"{path}/{i}")  # audit: TPF926


def in_a_function_of_its_own(model: nn.Module, path: str) -> None:
    torch.save(model.state_dict(), path)


def now_and_then(model: nn.Module, loader, path: str, local_rank: int) -> None:
    model = DistributedDataParallel(model)
    for step, x in enumerate(loader):
        model(x).sum().backward()
        if step % 1000 == 0:
            torch.save(model.state_dict(), path)  # audit: TPF926
        if step % 1000 == local_rank:
            torch.save(model.state_dict(), path)
        if step % 1000 == 0 and local_rank == 0:
            torch.save(model.state_dict(), path)


def decided(model: nn.Module, path: str, save_logs: bool) -> None:
    model = DistributedDataParallel(model)
    if save_logs:
        torch.save(model.state_dict(), path)


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


if __name__ == "__main__" and dist.get_rank() == 0:
    trained = DistributedDataParallel(nn.Linear(3, 3))
    trained(torch.zeros(3)).sum().backward()
    torch.save(trained.state_dict(), "model.pt")

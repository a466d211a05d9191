"""Loaders that are told for which device to pin."""

import torch
from torch.utils import data
from torch.utils.data import DataLoader, Dataset


def loader(dataset: Dataset) -> DataLoader:
    return DataLoader(dataset, batch_size=64, pin_memory=True, pin_memory_device="cuda")  # error: TPF904


def spread(dataset: Dataset, device: str) -> list[DataLoader]:
    first = data.DataLoader(
        dataset,
        pin_memory_device="cuda:0",  # audit: TPF904
        pin_memory=True,
    )
    second = torch.utils.data.DataLoader(dataset=dataset, pin_memory_device=device)  # audit: TPF904
    return [first, second]


# Look-alikes


def plain(dataset: Dataset) -> DataLoader:
    return DataLoader(dataset, batch_size=64, pin_memory=True, num_workers=4)


def empty(dataset: Dataset) -> DataLoader:
    return DataLoader(dataset, pin_memory=True, pin_memory_device="")


def unpacked(dataset: Dataset, options: dict) -> DataLoader:
    return DataLoader(dataset, **options)


class Loader:
    def __init__(self, pin_memory_device: str) -> None:
        self.device = pin_memory_device


def of_others() -> Loader:
    return Loader(pin_memory_device="cuda")


def tensors(x: torch.Tensor) -> torch.Tensor:
    return x.pin_memory()

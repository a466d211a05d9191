"""Loaders by the memory that their batches are in."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm
from transformers import TrainingArguments


def train(model: nn.Module, data: Dataset, device: torch.device) -> None:
    loader = DataLoader(data, batch_size=64, num_workers=8)  # audit: TPF402
    for epoch in range(10):
        for x, y in tqdm(loader):
            x, y = x.to(device), y.to(device)
            nn.functional.cross_entropy(model(x), y).backward()


class Trainer:
    def __init__(self, model: nn.Module, data: Dataset):
        self.model = model
        self.loader = DataLoader(  # error: TPF402
            data,
            batch_size=64,
            shuffle=True,
        )

    def run(self) -> None:
        for i, batch in enumerate(self.loader):
            self.model(batch["x"].cuda(non_blocking=True)).sum().backward()


def at_once(model: nn.Module, data: Dataset) -> None:
    for x in DataLoader(data, 32):  # audit: TPF402
        model(x.cuda()).sum().backward()


def pinned(model: nn.Module, data: Dataset, device: torch.device) -> None:
    loader = DataLoader(data, batch_size=64, pin_memory=True)
    for x in loader:
        model(x.to(device)).sum().backward()


def as_the_user_says(model: nn.Module, data: Dataset, device: torch.device, pin: bool, **options) -> None:
    for x in DataLoader(data, pin_memory=pin):
        model(x.to(device)).sum().backward()
    for x in DataLoader(data, **options):
        model(x.to(device)).sum().backward()


def off_on_purpose(model: nn.Module, data: Dataset, device: torch.device) -> None:
    for x in DataLoader(data, pin_memory=False):
        model(x.to(device)).sum().backward()


def on_the_host(model: nn.Module, data: Dataset) -> None:
    loader = DataLoader(data, batch_size=64)
    for x in loader:
        model(x).sum().backward()


def to_the_host(model: nn.Module, data: Dataset) -> list[torch.Tensor]:
    loader = DataLoader(data, batch_size=64)
    return [model(x).to("cpu") for x in loader]


def given_away(data: Dataset) -> DataLoader:
    return DataLoader(data, batch_size=64)


def another_loader(model: nn.Module, data: Dataset, batches, device: torch.device) -> None:
    loader = DataLoader(data, batch_size=64)
    print(len(loader))
    for x in batches:
        model(x.to(device)).sum().backward()


class OnGpu(Dataset):
    def __init__(self, rows, device: torch.device):
        self.rows = torch.tensor(rows, device="cuda")
        self.labels = torch.tensor(rows).to(device)
        self.weights = torch.tensor(rows)

    def __getitem__(self, index: int):
        return self.rows[index]


class Placed(OnGpu):
    def __getitem__(self, index: int):
        return self.labels[index]


class Partly(OnGpu):
    def __getitem__(self, index: int):
        return self.rows[index], self.weights[index]


def on_the_gpu_already(model: nn.Module, rows, device: torch.device) -> None:
    for x in DataLoader(OnGpu(rows, device), batch_size=64):
        model(x.cuda()).sum().backward()
    for x in DataLoader(Placed(rows, device), batch_size=64):
        model(x.to(device)).sum().backward()
    for x, weight in DataLoader(Partly(rows, device), batch_size=64):
        (model(x.to(device)) * weight.to(device)).sum().backward()


def move_all(model: nn.Module, batches: DataLoader) -> None:
    for x in batches:
        model(x.cuda())


def moved_in_a_function(model: nn.Module, data: Dataset) -> None:
    loader = DataLoader(data, batch_size=64)  # audit: TPF402
    move_all(model, loader)


def trained_by_transformers():
    TrainingArguments("out", dataloader_pin_memory=False)  # audit: TPF402
    return TrainingArguments("out"), TrainingArguments("out", dataloader_pin_memory=True)

"""Models on several devices."""

import torch
import torch.nn as nn
from pytorch_lightning import Trainer
from torch.nn.parallel import DataParallel as Parallel
from torch.nn.parallel import DistributedDataParallel, data_parallel


def wrapped(model: nn.Module) -> nn.Module:
    return nn.DataParallel(model)  # error: TPF921


def where_there_are_more(model: nn.Module) -> nn.Module:
    if torch.cuda.device_count() > 1:
        model = torch.nn.DataParallel(model, device_ids=[0, 1])  # error: TPF921
    return model.cuda()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = Parallel(nn.Linear(3, 4))  # error: TPF921

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return data_parallel(self.backbone, x)  # error: TPF921


def of_a_trainer(devices: int) -> list[Trainer]:
    found = [Trainer(devices=devices, strategy="ddp"), Trainer(devices=devices)]
    return [*found, Trainer(devices=devices, strategy="dp")]  # error: TPF921


def distributed(model: nn.Module, rank: int) -> nn.Module:
    return DistributedDataParallel(model, device_ids=[rank])


def asks(model: nn.Module) -> nn.Module:
    return model.module if isinstance(model, nn.DataParallel) else model


def of_another_library(model: nn.Module, library) -> nn.Module:
    return library.DataParallel(model)


class DataParallel(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def of_our_own() -> nn.Module:
    return DataParallel()

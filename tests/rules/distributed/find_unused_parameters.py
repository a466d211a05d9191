"""Wrappers by what they look for."""

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from lightning.pytorch import Trainer
from lightning.pytorch.strategies import DDPStrategy
from torch.nn.parallel import DistributedDataParallel as DDP


def wrapped(model: torch.nn.Module, rank: int) -> torch.nn.Module:
    return DDP(model, device_ids=[rank], find_unused_parameters=True)  # audit: TPF922


def of_accelerate() -> Accelerator:
    return Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])  # audit: TPF922


def of_lightning() -> DDPStrategy:
    return DDPStrategy(  # audit: TPF922
        find_unused_parameters=True,
    )


def by_name(devices: int) -> Trainer:
    return Trainer(devices=devices, strategy="ddp_find_unused_parameters_true")  # audit: TPF922


def by_another_name(devices: int) -> list[Trainer]:
    return [Trainer(devices=devices, strategy="ddp_find_unused_parameters_false"), Trainer(strategy="ddp"), Trainer()]


def by_default(model: torch.nn.Module, rank: int) -> torch.nn.Module:
    return DDP(model, device_ids=[rank])


def off(model: torch.nn.Module, rank: int) -> torch.nn.Module:
    return DDP(model, device_ids=[rank], find_unused_parameters=False)


def as_the_user_says(model: torch.nn.Module, unused: bool) -> torch.nn.Module:
    return DDP(model, find_unused_parameters=unused)


def the_same_each_time(model: torch.nn.Module) -> torch.nn.Module:
    return DDP(model, find_unused_parameters=True, static_graph=True)


def of_another_library(model: torch.nn.Module, library) -> torch.nn.Module:
    return library.DDP(model, find_unused_parameters=True)

"""Wrappers by what they look for."""

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from lightning.pytorch.strategies import DDPStrategy
from torch.nn.parallel import DistributedDataParallel as DDP


def wrapped(model: torch.nn.Module, rank: int) -> torch.nn.Module:
    return DDP(model, device_ids=[rank])


def of_accelerate() -> Accelerator:
    return Accelerator(kwargs_handlers=[DistributedDataParallelKwargs()])


def of_lightning() -> DDPStrategy:
    return DDPStrategy()


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

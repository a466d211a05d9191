"""Compiled models that are wrapped for distributed training."""

import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.nn.parallel import DistributedDataParallel as DDP


def wrap(model: nn.Module, rank: int) -> nn.Module:
    model = torch.compile(model.to(rank))
    return DDP(model, device_ids=[rank])  # audit: TPF714


def wrap_at_once(model: nn.Module) -> nn.Module:
    return DDP(torch.compile(model, mode="max-autotune"))  # audit: TPF714


def shard(model: nn.Module, compiled: bool) -> nn.Module:
    if compiled:
        model = torch.compile(model)
    return FSDP(model, use_orig_params=True)  # audit: TPF714


# Look-alikes


def wrapped_first(model: nn.Module, rank: int) -> nn.Module:
    model = DDP(model.to(rank), device_ids=[rank])
    return torch.compile(model)


def sharded_first(model: nn.Module) -> nn.Module:
    return torch.compile(FSDP(model, use_orig_params=True))


def not_compiled(model: nn.Module) -> nn.Module:
    return DDP(model.cuda())


def another(model: nn.Module, teacher: nn.Module) -> nn.Module:
    teacher = torch.compile(teacher)
    return DDP(model), teacher


def by_layer(model: nn.Module) -> nn.Module:
    for index, layer in enumerate(model.layers):
        model.layers[index] = torch.compile(layer)
    return DDP(model)


def made_anew(model: nn.Module, build) -> nn.Module:
    model = torch.compile(model)
    model(torch.zeros(1))
    model = build()
    return DDP(model)

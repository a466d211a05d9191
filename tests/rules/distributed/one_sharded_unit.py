"""Models that FSDP shards."""

import functools

import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import fully_shard


def build(model: nn.Module):
    return FSDP(model, device_id=torch.cuda.current_device())  # audit: TPF931


class Trainer:
    def __init__(self, model: nn.Module):
        self.model = fully_shard(model)  # audit: TPF931


class Engine:
    def __init__(self, model: nn.Module, mesh):
        from torch.distributed._composable.fsdp import fully_shard as shard

        shard(model, mesh=mesh)  # audit: TPF931


# Look-alikes


def of_a_layer():
    return FSDP(nn.Linear(8, 8))


def plain(model: nn.Module):
    return nn.parallel.DistributedDataParallel(model)


def partial(model: nn.Module):
    return functools.partial(nn.Linear, 8)


def other(library, model: nn.Module):
    return library.fully_shard(model)


def another(library, model: nn.Module):
    return library.FSDP(model)

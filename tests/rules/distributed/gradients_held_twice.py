"""Gradients of DDP: those that are held twice, and views of buckets."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def plain(model: nn.Module, rank: int) -> nn.Module:
    return DistributedDataParallel(model.cuda(rank), device_ids=[rank])  # audit: TPF935


def by_its_full_name(model: nn.Module) -> nn.Module:
    return nn.parallel.DistributedDataParallel(module=model.cuda())  # audit: TPF935


class Trainer:
    def __init__(self, model: nn.Module, rank: int):
        self.model = torch.compile(model.cuda(rank))
        self.parallel = DistributedDataParallel(self.model, [rank], bucket_cap_mb=50)  # audit: TPF935


# Look-alikes


def as_views(model: nn.Module, rank: int) -> nn.Module:
    return DistributedDataParallel(model.cuda(rank), device_ids=[rank], gradient_as_bucket_view=True)


def on_purpose(model: nn.Module) -> nn.Module:
    return DistributedDataParallel(model.cuda(), gradient_as_bucket_view=False)


def as_asked(model: nn.Module, as_view: bool) -> nn.Module:
    return DistributedDataParallel(model.cuda(), gradient_as_bucket_view=as_view)


def as_given(model: nn.Module, options: dict[str, object]) -> nn.Module:
    return DistributedDataParallel(model.cuda(), **options)


def in_threads(model: nn.Module) -> nn.Module:
    return nn.Sequential(model.cuda())
